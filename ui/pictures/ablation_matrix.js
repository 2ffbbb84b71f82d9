// The matrix: an SVG made by the server. A plain click on a cell goes there within the app; any other kind of click is the
// browser's own (a new tab, copying the address), since every cell is a link. All cells are one stop for Tab, and arrows lead
// from one to the next; where the screen is narrow, the names of the rows stay while the columns go by.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root"), there = (href) => new URL(href, document.baseURI)
  if (data.to && root.to !== data.to) go(there(data.to)) // told by the server, once it has taken down what it needs
  root.to = data.to
  if (root.shown !== data.svg) {
    root.shown = data.svg
    root.innerHTML = data.svg
    root.rows = gridded(root.querySelector("svg"))
    namesStay(root)
    stop(root, root.rows.flat().find(Boolean))
  }
  root.addEventListener("focusin", focused) // once, however often it is asked for
  root.onclick = (event) => {
    const link = event.target.closest("a")
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    if (event.timeStamp - root.pressed < 1000) return // the page is being turned to the first one
    root.pressed = event.timeStamp
    if (data.asks) setTriggerValue("open", link.getAttribute("href"))
    else go(there(link.getAttribute("href")))
  }
  root.onkeydown = (event) => {
    const link = event.target.closest("a")
    if (!link || event.ctrlKey || event.metaKey || event.altKey) return
    const to = next(root.rows, link, event.key)
    if (to === undefined) return
    event.preventDefault()
    to?.focus()
  }
}

function go(to) {
  turnTo(to.href, Object.fromEntries(to.searchParams))
}

function focused(event) {
  const link = event.target.closest("a")
  if (link) stop(event.currentTarget, link)
}

// The one that Tab leads to; and it is not left below the names.
function stop(root, link) {
  for (const each of root.rows.flat()) if (each) each.setAttribute("tabindex", each === link ? 0 : -1)
  const names = root.querySelector(".names")
  if (!names || !link?.matches(":focus")) return
  const hidden = names.getBoundingClientRect().right - link.getBoundingClientRect().left
  if (hidden > 0) root.scrollLeft -= hidden + 4
}

// -> the cell that a key leads to, null for none in that direction, undefined for a key that leads nowhere.
function next(rows, link, key) {
  const row = rows.findIndex((each) => each.includes(link)), column = rows[row].indexOf(link)
  const along = rows[row], down = rows.map((each) => each[column])
  const first = (cells) => cells.find(Boolean) ?? null
  switch (key) {
    case "ArrowRight": return first(along.slice(column + 1))
    case "ArrowLeft": return first(along.slice(0, column).reverse())
    case "ArrowDown": return first(down.slice(row + 1))
    case "ArrowUp": return first(down.slice(0, row).reverse())
    case "Home": return first(along)
    case "End": return first([...along].reverse())
  }
}

// Says of each shape what it is in the grid. -> rows of links, null where there is none
function gridded(svg) {
  svg.setAttribute("role", "grid")
  const rows = [], shapes = [...svg.children]
  let row = group(svg, "row"), header, before
  for (const shape of shapes) {
    const name = shape.matches("text.name")
    if (name && shape.matches(".end") && !before?.matches(".end.name")) {
      row = group(svg, "row")
      rows.push([])
    }
    if (name) {
      const goesOn = before?.matches(".name") && before.getAttribute("x") === shape.getAttribute("x") // a name of several lines
      header = goesOn ? header : group(row, shape.matches(".end") ? "rowheader" : "columnheader")
      header.append(shape)
    } else if (shape.matches("a, g")) {
      group(row, "gridcell").append(shape)
      rows.at(-1).push(shape.matches("a") ? shape : null)
    }
    before = shape
  }
  return rows
}

function group(parent, role) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "g")
  made.setAttribute("role", role)
  parent.append(made)
  return made
}

// A copy of the names, over the picture: it stays at the edge of what scrolls.
function namesStay(root) {
  const svg = root.querySelector("svg"), cell = svg.querySelector("[role=gridcell] rect")
  if (!cell) return
  const { width, height } = svg.viewBox.baseVal, left = cell.getAttribute("x") - 1
  const names = document.createElement("div")
  names.className = "names"
  names.setAttribute("aria-hidden", "true")
  names.style.width = `${(100 * left) / width}%`
  const copy = svg.cloneNode()
  for (const each of ["role", "aria-label"]) copy.removeAttribute(each)
  copy.setAttribute("viewBox", `0 0 ${left} ${height}`)
  copy.append(...[...svg.querySelectorAll("[role=rowheader] text")].map((each) => each.cloneNode(true)))
  names.append(copy)
  svg.before(names)
}
