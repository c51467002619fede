"""Lets numba compile the operations of ``_simd.py`` as operations on LLVM's vectors of doubles.

LLVM maps a vector to the registers of the processor, and to several registers if the vector is wider than one.
"""

import operator
import platform
from collections.abc import Callable, Sequence

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, config
from numba.core.base import BaseContext
from numba.core.datamodel import DataModelManager
from numba.core.typing import Signature
from numba.core.typing.context import BaseContext as TypingContext
from numba.extending import intrinsic, models, overload, register_model
from numba.np.arrayobj import make_array

from rplvq.lanes import _simd as simd

Values = Sequence[ir.Value]
Generator = Callable[[BaseContext, ir.IRBuilder, Signature, Values], ir.Value]
Typed = tuple[Signature, Generator]
"""The types of an operation, and what emits its code."""


class Vector(types.Type):
    """The numba type of a vector of ``width`` doubles."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Vector{width}")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """Represents a vector as one LLVM value."""

    def __init__(self, manager: DataModelManager, kind: Vector) -> None:
        super().__init__(manager, kind, llvm_type(kind))


def llvm_type(kind: Vector) -> ir.VectorType:
    """Return the LLVM type of a vector."""
    return ir.VectorType(ir.DoubleType(), kind.width)


def pointer(
    context: BaseContext, builder: ir.IRBuilder, kinds: Sequence[types.Type], values: Values, kind: Vector
) -> ir.Value:
    """Return a pointer to the vector that begins in ``values[0]``, an array or an address, at index ``values[1]``."""
    is_array = isinstance(kinds[0], types.Array)
    data = make_array(kinds[0])(context, builder, values[0]).data if is_array else values[0]
    return builder.bitcast(builder.gep(data, [values[1]]), llvm_type(kind).as_pointer())


@intrinsic
def address(context: TypingContext, array: types.Type) -> Typed:
    """Return where the numbers of an array begin."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        return make_array(signature.args[0])(context, builder, values[0]).data

    return types.CPointer(types.float64)(array), generate


@overload(simd.raw, strict=False)
def raw(arrays: types.Array | types.UniTuple) -> Callable[..., object]:
    """Take the address of an array, or those of a tuple of one or two arrays."""
    if isinstance(arrays, types.Array):
        return lambda arrays: address(arrays)
    if len(arrays) == 1:
        return lambda arrays: (address(arrays[0]),)
    return lambda arrays: (address(arrays[0]), address(arrays[1]))


@intrinsic
def load(context: TypingContext, array: types.Type, index: types.Type, like: types.Type) -> Typed:
    """Read a vector. The code assumes the alignment of doubles only, because an array may begin anywhere."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        vector = builder.load(pointer(context, builder, signature.args, values, signature.return_type))
        vector.align = 8
        return vector

    return Vector(like.count)(array, types.intp, like), generate


@intrinsic
def store(context: TypingContext, array: types.Type, index: types.Type, value: types.Type) -> Typed:
    """Write a vector."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        builder.store(values[2], pointer(context, builder, signature.args, values, signature.args[2])).align = 8
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


@intrinsic
def fill(context: TypingContext, value: types.Type, like: types.Type) -> Typed:
    """Repeat a number in all lanes."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        kind = llvm_type(signature.return_type)
        empty = ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(empty, values[0], ir.Constant(ir.IntType(32), 0))  # the shuffle repeats lane 0
        return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None))

    return Vector(like.count)(types.float64, like), generate


@intrinsic
def any_positive(context: TypingContext, value: types.Type) -> Typed:
    """Compare all lanes with 0 at once."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        flags = builder.fcmp_ordered(">", values[0], ir.Constant(values[0].type, None))  # None is 0 in all lanes
        bits = builder.bitcast(flags, ir.IntType(values[0].type.count))  # one bit per lane
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(value), generate


def larger(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
    """Take the larger one of two values, lane by lane."""
    return builder.select(builder.fcmp_ordered(">", *values), *values)  # an ordered comparison with NaN is false


def chosen(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
    """Take the second value in lanes where the first one is positive, else the third."""
    flags = builder.fcmp_ordered(">", values[0], ir.Constant(values[0].type, None))
    return builder.select(flags, values[1], values[2])


def arithmetic(name: str) -> Generator:
    """Return a generator of the LLVM instruction ``name``."""
    return lambda context, builder, signature, values: getattr(builder, name)(*values)


def function(name: str) -> Generator:
    """Return a generator of a call of the LLVM function ``name``."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
        kind = llvm_type(signature.return_type)
        called = ir.FunctionType(kind, [kind] * len(values))
        full = f"llvm.{name}.v{kind.count}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, called, full), values)

    return generate


def fuses() -> bool:
    """Whether the target processor has fused multiply-adds. For others LLVM would call a slow library function."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    if config.CPU_NAME in (None, "host"):
        return bool(binding.get_host_cpu_features().get("fma", False))
    return "+fma" in (config.CPU_FEATURES or "")


def multiply_and_add(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
    """Multiply and add with two roundings."""
    return builder.fadd(builder.fmul(values[0], values[1]), values[2])


def teach_one(known: Callable[..., object], generate: Generator) -> None:
    """Let numba compile ``known(vector)`` with the code that ``generate`` emits."""

    @intrinsic
    def emit(context: TypingContext, value: types.Type) -> Typed:
        return value(value), generate

    @overload(known, strict=False)
    def typed(value: types.Type) -> Callable[..., object] | None:
        return (lambda value: emit(value)) if isinstance(value, Vector) else None


def teach_two(known: Callable[..., object], generate: Generator) -> None:
    """Let numba compile ``known(vector, vector)`` with the code that ``generate`` emits."""

    @intrinsic
    def emit(context: TypingContext, value: types.Type, other: types.Type) -> Typed:
        return value(value, other), generate

    @overload(known, strict=False)
    def typed(value: types.Type, other: types.Type) -> Callable[..., object] | None:
        both = isinstance(value, Vector) and isinstance(other, Vector)
        return (lambda value, other: emit(value, other)) if both else None


def teach_three(known: Callable[..., object], generate: Generator) -> None:
    """Let numba compile ``known(vector, vector, vector)`` with the code that ``generate`` emits."""

    @intrinsic
    def emit(context: TypingContext, value: types.Type, other: types.Type, added: types.Type) -> Typed:
        return value(value, other, added), generate

    @overload(known, strict=False)
    def typed(value: types.Type, other: types.Type, added: types.Type) -> Callable[..., object]:
        return lambda value, other, added: emit(value, other, added)


overload(simd.load)(lambda array, index, like: lambda array, index, like: load(array, index, like))
overload(simd.store)(lambda array, index, value: lambda array, index, value: store(array, index, value))
overload(simd.fill)(lambda value, like: lambda value, like: fill(value, like))
overload(simd.any_positive)(lambda value: lambda value: any_positive(value))
teach_one(simd.root, function("sqrt"))
teach_one(simd.magnitude, function("fabs"))
teach_three(simd.fused, function("fma") if fuses() else multiply_and_add)
teach_three(simd.chosen, chosen)
teach_two(simd.signed, function("copysign"))
teach_two(simd.larger, larger)
teach_two(operator.add, arithmetic("fadd"))
teach_two(operator.sub, arithmetic("fsub"))
teach_two(operator.mul, arithmetic("fmul"))
teach_two(operator.truediv, arithmetic("fdiv"))
