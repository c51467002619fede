// MathJax renders what pymdownx.arithmatex marks; everything it needs is in the one file beside this one.
window.MathJax = {
  tex: {
    inlineMath: [["\\(", "\\)"]],
    displayMath: [["\\[", "\\]"]],
    packages: { "[-]": ["autoload", "require"] },
    macros: {
      Exp: "\\operatorname{Exp}",
      Log: "\\operatorname{Log}",
      tr: "\\operatorname{tr}",
      diag: "\\operatorname{diag}",
    },
  },
  options: { ignoreHtmlClass: ".*|", processHtmlClass: "arithmatex", enableMenu: false },
};
