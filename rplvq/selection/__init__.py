"""Whether to train, from where and how long: a race between candidates on held-out samples, before training."""

from rplvq.selection._candidates import HeldOut, More, split_classes
from rplvq.selection._choice import Choice, Plan, Tried, choose, enough_epochs

__all__ = ["Choice", "HeldOut", "More", "Plan", "Tried", "choose", "enough_epochs", "split_classes"]
