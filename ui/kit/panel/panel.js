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
  const controls = groups.flatMap((group) => group.controls)
  const names = new Set(namesOf(controls))
  for (const name of panel.rows.keys()) if (!names.has(name)) panel.rows.delete(name)
  place(panel.root, back && groups.length ? [drawHeader(panel), ...elements] : elements)
  markContents(panel.root, controls)
  if (back) measureStrip(panel)
}

const namesOf = (controls) => controls.map((control) => control.name)

// What the styles ask for. `:has()` would answer as well, but makes a drag a third slower.
function markContents(root, controls) {
  update(root.dataset, { controls: namesOf(controls).join(" ") })
  root.classList.toggle("bar", Boolean(root.querySelector(".row")))
  root.classList.toggle("with-tabs", controls.some((control) => control.look === "underlined"))
  root.classList.toggle("with-chips", Boolean(root.querySelector(".chip:not([hidden])")))
}

// The head of the sidebar's settings: how many differ from the defaults, and a button that resets them.
function drawHeader(panel) {
  if (!panel.header) {
    panel.count = element("span", { className: "count" })
    panel.all = element("button", { className: "all", type: "button", textContent: "Reset", onclick: () => store.change({ "@back": "all" }) })
    panel.note = element("div", { className: "note" })
    panel.pick = element("select", { className: "group", onchange: () => { pickGroup(panel, panel.pick.value); measureStrip(panel) } })
    panel.pick.setAttribute("aria-label", "Group of settings")
    panel.header = element("div", { className: "settings" }, element("b", { textContent: "Settings" }), panel.count, panel.all, panel.pick, panel.note)
  }
  const changed = [...panel.rows.values()].filter((row) => row.box.classList.contains("changed")).length
  update(panel.count, { textContent: changed ? `${changed} changed` : "all at defaults" })
  update(panel.note, { textContent: panel.data.note })
  update(panel.all, { hidden: !changed, title: panel.data.back })
  panel.all.setAttribute("aria-label", panel.data.back)
  const names = panel.data.groups.map((group) => group.name)
  if (panel.names !== names.join()) panel.pick.replaceChildren(...names.map((name) => new Option(name)))
  panel.names = names.join()
  pickGroup(panel, names.includes(panel.picked) ? panel.picked : names[0])
  return panel.header
}

// In presentation mode the strip at the foot shows one group (server/frame.css).
function pickGroup(panel, name) {
  panel.picked = name
  update(panel.pick, { value: name })
  for (const [group, box] of panel.groups) box.classList.toggle("picked", group === name)
  if (store.presents) panel.groups.get(name).open = true
}

// Pictures end above the strip.
function measureStrip(panel) {
  if (store.presents) document.documentElement.style.setProperty("--ablation-strip", `${panel.root.offsetHeight}px`)
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
  update(box.dataset, { controls: namesOf(group.controls).join(" ") })
  return box
}

function drawControl(panel, control, isBare) {
  let row = panel.rows.get(control.name)
  const kind = kindOf(control)
  if (!row || row.kind !== kind) panel.rows.set(control.name, (row = kind in FIELDS ? makeRow(control, kind, isBare) : makeText(panel, control)))
  row.control = control
  if (!(control.kind in FIELDS)) {
    row.show(control)
    return row.box
  }
  const text = store.chosen(control.set)
  row.show(control, text === undefined ? control.value : text ?? control.fresh ?? control.value)
  if (isBare) return row.box
  const isDefault = text === undefined ? control.back === undefined : text === null || (text === control.fresh && !control.follows)
  update(row.back, { hidden: isDefault, title: isDefault ? "" : `Reset to ${control.usual}` })
  row.back.setAttribute("aria-label", isDefault ? "" : `${control.label}: reset to ${control.usual}`)
  row.box.classList.toggle("changed", !isDefault && !(control.carried && text === undefined))
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
    if (control.kind === "title") update(row.box, { textContent: now.label })
    if (control.kind !== "press") return
    update(row.box.firstChild, { textContent: now.icon })
    update(row.box.lastChild, { textContent: now.label })
    update(row.box, { title: now.help, disabled: now.off })
  }
  return row
}

// A row of buttons is a menu where there is little room: on a phone, and in presentation mode.
function kindOf(control) {
  return control.folds && (store.presents || matchMedia("(max-width: 640px)").matches) ? "choice" : control.kind
}

let ids = 0

function makeRow(control, kind, isBare) {
  const row = { kind, control, id: `control-${++ids}` }
  row.change = (text, held = false) => store.change({ [row.control.set]: text, ...row.control.also }, held)
  row.field = FIELDS[kind](row)
  if (isBare) {
    row.box = element("div", { className: `control ${kind} bare ${control.look ?? ""}` }, row.field)
    row.box.dataset.name = control.name
    if (kind === "switch") row.box.append(element("label", { htmlFor: row.id, textContent: control.label, title: control.help }))
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
  row.box = element("div", { className: `control ${kind}` })
  row.box.dataset.name = control.name
  if (kind === "switch") {
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

// Set the fields that differ: the browser styles anew what is set, though it stays the same.
function update(element, fields) {
  for (const [name, value] of Object.entries(fields)) if (element[name] !== value) element[name] = value
}

// What stands where it belongs is not touched, and what is gone does not push it aside: it would lose the focus.
function place(parent, children) {
  const gone = [...parent.children].filter((child) => !children.includes(child))
  const hadFocus = gone.some((child) => child.contains(document.activeElement))
  for (const child of gone) child.remove()
  children.forEach((child, at) => { if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null) })
  if (hadFocus) (parent.querySelector(".more summary") ?? parent.querySelector("input, select, button"))?.focus({ preventScroll: true })
}
