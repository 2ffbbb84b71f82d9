// A list of claims: title and paper, interval, verdict. Where a click leads somewhere each is a button.

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (root.shown === data) return
  root.shown = data
  const { rows, pick, set } = JSON.parse(data)
  root.setAttribute("role", "list")
  root.replaceChildren(...rows.map((row, at) => {
    const made = document.createElement(pick ? "button" : "div")
    made.className = "row"
    made.setAttribute("aria-label", row.said)
    const picture = document.createElement("div")
    picture.innerHTML = row.picture
    made.append(words(row.title, row.what, "", row.paper), picture, words(row.verdict, row.number, row.kind))
    if (pick) {
      made.type = "button"
      made.onclick = () => store.change({ [set]: at })
    } else {
      made.setAttribute("role", "img")
    }
    const item = document.createElement("div")
    item.setAttribute("role", "listitem")
    item.append(made)
    return item
  }))
}

function words(first, second, kind = "", source = "") {
  const made = document.createElement("div"), strong = document.createElement("b"), small = document.createElement("small")
  made.className = kind
  strong.textContent = first
  small.textContent = second
  if (source) {
    const paper = document.createElement("i")
    paper.textContent = ` (${source})`
    strong.append(paper)
  }
  made.append(strong, small)
  return made
}
