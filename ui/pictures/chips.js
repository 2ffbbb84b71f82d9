// A text as one button per token: those that were generated can be picked, the others are shaded by how much they are read.

export default function ({ data, parentElement }) {
  const made = JSON.parse(data)
  const root = parentElement.querySelector(".root")
  root.setAttribute("aria-label", made.alt)
  root.replaceChildren(...made.tokens.map((token, at) => {
    const chip = document.createElement(token.pick ? "button" : "span")
    chip.className = ["chip", token.pick ? "made" : "", at === made.selected ? "selected" : "", token.unknown ? "unknown" : ""].join(" ")
    chip.textContent = token.text
    if (token.weight !== null) {
      chip.style.setProperty("--share", `${Math.round(100 * Math.min(1, token.weight))}%`)
      const weight = document.createElement("small")
      weight.textContent = token.weight >= 0.005 ? token.weight.toFixed(2) : ""
      chip.append(weight)
    }
    chip.title = token.tip
    if (token.pick) {
      chip.type = "button"
      chip.setAttribute("aria-pressed", at === made.selected)
      chip.onclick = () => store.change({ [made.set]: at })
    }
    return chip
  }))
}
