// Controls that are drawn together: a function of what the server sent and of what has been chosen since (store.js).

const panels = new WeakMap()

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".ablation-panel")
  if (!panels.has(root)) panels.set(root, { root, rows: new Map(), groups: new Map() })
  const panel = panels.get(root)
  panel.data = data
  store.page = data.page // what is moved from now on is of this page
  store.redraws.set(root, () => drawPanel(panel))
  drawPanel(panel)
}

function drawPanel(panel) {
  const { groups, back } = panel.data
  const elements = groups.map((group, at) => drawGroup(panel, group, at))
  panel.all ??= element("button", { className: "all", type: "button", onclick: () => store.change({ "@back": "all" }) })
  panel.all.textContent = `↺ ${back}`
  place(panel.root, back && groups.length ? [...elements, panel.all] : elements)
  const names = new Set(groups.flatMap((group) => group.controls.map((control) => control.name)))
  for (const name of panel.rows.keys()) if (!names.has(name)) panel.rows.delete(name)
}

// A group has a name, and is opened and closed by it; or it is a row.
function drawGroup(panel, group, at) {
  let box = panel.groups.get(group.name ?? at)
  if (!box) {
    const controls = element("div", { className: group.name ? "controls" : "row" })
    box = group.name ? element("details", { open: !group.folded }, element("summary", { textContent: group.name }), controls) : element("div", {}, controls)
    panel.groups.set(group.name ?? at, box)
  }
  place(box.lastChild, group.controls.map((control) => drawControl(panel, control, !group.name)))
  return box
}

function drawControl(panel, control, isBare) {
  let row = panel.rows.get(control.name)
  if (!row || row.kind !== control.kind) panel.rows.set(control.name, (row = control.kind in FIELDS ? makeRow(control, isBare) : makeText(panel, control)))
  row.control = control
  if (!(control.kind in FIELDS)) {
    row.show(control)
    return row.box
  }
  const text = store.chosen(control.set)
  row.show(control, text === undefined ? control.value : text ?? control.fresh ?? control.value)
  if (isBare) return row.box
  const isDefault = text === undefined ? control.back === undefined : text === null || (text === control.fresh && !control.follows)
  row.back.hidden = isDefault
  row.back.title = isDefault ? "" : `Back to ${control.usual}`
  row.back.setAttribute("aria-label", isDefault ? "" : `${control.label}: back to ${control.usual}`)
  row.box.classList.toggle("changed", !isDefault)
  row.explain(control)
  return row.box
}

// What stands beside controls and has no value: words, a title, a button, a list of words to write with.
function makeText(panel, control) {
  if (control.kind === "lexicon") return lexicon(panel)
  const row = { kind: control.kind }
  row.box = element(control.kind === "press" ? "button" : control.kind === "title" ? "h1" : "div", { className: control.kind })
  row.box.dataset.name = control.name
  if (control.kind === "press") {
    row.box.type = "button"
    row.box.append(element("span", { className: "icon" }), element("span", {}))
    row.box.firstChild.setAttribute("aria-hidden", "true")
    row.box.onclick = () => store.change({ [control.set]: "" })
  }
  row.show = (now) => {
    if (control.kind === "words" && row.html !== now.html) row.box.innerHTML = row.html = now.html
    if (control.kind === "title") row.box.textContent = now.label
    if (control.kind !== "press") return
    row.box.firstChild.textContent = now.icon
    row.box.lastChild.textContent = now.label
    Object.assign(row.box, { title: now.help, disabled: now.off })
  }
  return row
}

let ids = 0

function makeRow(control, isBare) {
  const row = { kind: control.kind, control, id: `control-${++ids}` }
  row.change = (text, held = false) => store.change({ [row.control.set]: text, ...row.control.also }, held)
  row.field = FIELDS[control.kind](row)
  if (isBare) {
    row.box = element("div", { className: `control ${control.kind} bare` }, row.field)
    row.box.dataset.name = control.name
    if (control.kind === "switch") row.box.append(element("label", { htmlFor: row.id, textContent: control.label, title: control.help }))
    else if (row.field.matches("input, select")) row.field.setAttribute("aria-label", control.label)
    return row
  }
  const label = element("label", { htmlFor: row.id, textContent: control.label })
  row.back = element("button", { className: "back", type: "button", textContent: "↺", onclick: () => {
    store.change({ [row.control.name]: null })
    const field = row.field.matches("input, select") ? row.field : row.field.querySelector("input")
    field?.focus({ preventScroll: true }) // the button goes
  } })
  const help = element("div", { className: "help", id: `${row.id}-help`, hidden: true })
  const ask = element("button", { className: "ask", type: "button", textContent: "?" })
  ask.setAttribute("aria-label", `About ${control.label}`)
  ask.setAttribute("aria-expanded", "false")
  ask.setAttribute("aria-controls", help.id)
  const open = (isOpen) => { help.hidden = !isOpen; ask.setAttribute("aria-expanded", isOpen) }
  ask.onclick = () => open(help.hidden)
  ask.onkeydown = (event) => { if (event.key === "Escape") open(false) }
  row.explain = (now) => {
    const lines = [now.help, ...(now.about ?? []).map((about, at) => `${now.options[at][1]}: ${about}`)]
    if (help.textContent !== lines.join("")) help.replaceChildren(...lines.map((textContent) => element("p", { textContent })))
  }
  const head = element("div", { className: "head" }, label, row.back, ask)
  row.box = element("div", { className: `control ${control.kind}` })
  row.box.dataset.name = control.name
  if (control.kind === "switch") {
    head.prepend(row.field)
    row.box.append(head, help)
  } else {
    if (row.value) head.append(row.value)
    row.box.append(head, row.field, help)
  }
  return row
}

function element(name, fields, ...children) {
  const made = Object.assign(document.createElement(name), fields)
  made.append(...children)
  return made
}

// What stands where it belongs is not touched, and what is gone does not push it aside: it would lose the focus.
function place(parent, children) {
  for (const child of [...parent.children]) if (!children.includes(child)) child.remove()
  children.forEach((child, at) => { if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null) })
}
