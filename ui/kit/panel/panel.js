// Controls that are drawn together. A value is sent as soon as it changes, and the next one when the page has answered: the newest then.
// What the visitor has moved stays as it is until the page has answered to it.

const PATIENCE = { held: 1500, free: 250 } // ms after which an answer is no longer waited for: a later value ends what is still computed
const panels = new WeakMap()

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".ablation-panel")
  let panel = panels.get(root)
  if (!panel) {
    panels.set(root, (panel = { root, rows: new Map(), number: data.answers, answered: data.answers, folded: new Map() }))
    // Whoever turns to something else may turn to another page: what waits is said before.
    root.addEventListener("focusout", () => { panel.held = null; go(panel) })
  }
  Object.assign(panel, { data, answered: Math.max(panel.answered, data.answers), tell: (message) => setStateValue("moved", message), back: (name) => setTriggerValue("back", name), press: (name) => setTriggerValue("pressed", name) })
  panel.anew = panel.session !== data.session
  if (panel.anew) again(panel)
  draw(panel)
  if (panel.answered >= panel.number) go(panel)
  return () => clearTimeout(panel.timer)
}

// What is said, and when

function moved(panel, row, held) {
  panel.held = held ? row : null
  row.moved = Infinity // the number of the message that says so: none yet
  panel.waits = true
  if (panel.answered >= panel.number) go(panel)
  else if (!held) patient(panel, PATIENCE.free)
}

function patient(panel, ms) {
  clearTimeout(panel.timer)
  panel.timer = setTimeout(() => { panel.answered = panel.number; go(panel) }, ms)
}

// A server that was started again knows only what the address says. What it has not answered to is said to it once more.
function again(panel) {
  panel.session = panel.data.session
  for (const row of panel.rows.values()) {
    row.moved = row.moved > panel.answered ? Infinity : 0
    panel.waits ||= row.moved === Infinity
  }
  panel.answered = panel.number
}

function go(panel) {
  clearTimeout(panel.timer)
  if (!panel.waits) return
  panel.waits = false
  panel.number++
  const values = {}
  for (const row of panel.rows.values()) {
    if (row.moved === Infinity) row.moved = panel.number
    if (row.moved) values[row.key] = row.read()
  }
  patient(panel, PATIENCE.held)
  panel.tell({ session: panel.session, number: panel.number, held: Boolean(panel.held), values })
}

// What is drawn

function draw(panel) {
  const groups = panel.data.groups.map((group, at) => drawnGroup(panel, group, at))
  panel.all ??= element("button", { className: "all", type: "button", onclick: () => panel.back("") })
  panel.all.textContent = `↺ ${panel.data.back}`
  place(panel.root, panel.data.back && groups.length ? [...groups, panel.all] : groups)
  const there = new Set(panel.data.groups.flatMap((group) => group.controls.map((one) => one.name)))
  for (const name of panel.rows.keys()) if (!there.has(name)) panel.rows.delete(name)
}

// A group has a name, and is opened and closed by it; or it is a row.
function drawnGroup(panel, group, at) {
  let box = panel.folded.get(group.name ?? at)
  if (!box) {
    const controls = element("div", { className: group.name ? "controls" : "row" })
    box = group.name ? element("details", { open: !group.folded }, element("summary", { textContent: group.name }), controls) : element("div", {}, controls)
    panel.folded.set(group.name ?? at, box)
  }
  place(box.lastChild, group.controls.map((one) => drawnRow(panel, one, !group.name)))
  return box
}

function drawnRow(panel, one, bare) {
  let row = panel.rows.get(one.name)
  if (!row || row.kind !== one.kind) panel.rows.set(one.name, (row = one.kind in FIELDS ? made(panel, one, bare) : said(panel, one)))
  if (!row.read) {
    row.show(one)
    return row.box
  }
  if (panel.anew) row.key = one.key
  if (row.moved <= panel.data.answers && panel.held !== row) {
    // The key stays with what was said of it for as long as the page may speak of it.
    const fresh = row.key !== one.key
    if (fresh) row.moved = 0
    row.key = one.key
    row.show(one, fresh)
  }
  if (bare) return row.box
  row.back.hidden = one.back === undefined
  row.back.title = row.back.hidden ? "" : `Back to ${one.back}`
  row.back.setAttribute("aria-label", row.back.hidden ? "" : `${one.label}: back to ${one.back}`)
  row.box.classList.toggle("changed", one.back !== undefined)
  row.about(one)
  return row.box
}

// What stands beside controls, and moves nothing.
function said(panel, one) {
  if (one.kind === "lexicon") return lexicon(panel)
  const row = { kind: one.kind, moved: 0 }
  row.box = element(one.kind === "press" ? "button" : one.kind === "title" ? "h1" : "div", { className: one.kind })
  row.box.dataset.name = one.name
  if (one.kind === "press") {
    row.box.type = "button"
    row.box.append(element("span", { className: "icon" }), element("span", {}))
    row.box.firstChild.setAttribute("aria-hidden", "true")
    row.box.onclick = () => panel.press(one.name)
  }
  row.show = (now) => {
    if (one.kind === "words" && row.html !== now.html) row.box.innerHTML = row.html = now.html
    if (one.kind === "title") row.box.textContent = now.label
    if (one.kind !== "press") return
    row.box.firstChild.textContent = now.icon
    row.box.lastChild.textContent = now.label
    Object.assign(row.box, { title: now.help, disabled: now.off })
  }
  return row
}

let ids = 0

function made(panel, one, bare) {
  const id = `control-${++ids}`
  const row = { kind: one.kind, key: one.key, moved: 0 }
  if (bare) {
    row.field = FIELDS[one.kind](id, row, (held) => moved(panel, row, held))
    row.box = element("div", { className: `control ${one.kind} bare` }, row.field)
    row.box.dataset.name = one.name
    if (one.kind === "switch") row.box.append(element("label", { htmlFor: id, textContent: one.label, title: one.help }))
    else if (row.field.matches("input, select")) row.field.setAttribute("aria-label", one.label)
    return row
  }
  const label = element("label", { htmlFor: id, textContent: one.label })
  row.back = element("button", { className: "back", type: "button", textContent: "↺", onclick: () => {
    panel.back(one.name)
    const field = row.field.matches("input, select") ? row.field : row.field.querySelector("input")
    field?.focus({ preventScroll: true }) // the button goes
  } })
  const help = element("div", { className: "help", id: `${id}-help`, hidden: true })
  const ask = element("button", { className: "ask", type: "button", textContent: "?" })
  ask.setAttribute("aria-label", `About ${one.label}`)
  ask.setAttribute("aria-expanded", "false")
  ask.setAttribute("aria-controls", help.id)
  const open = (is) => { help.hidden = !is; ask.setAttribute("aria-expanded", is) }
  ask.onclick = () => open(help.hidden)
  ask.onkeydown = (event) => { if (event.key === "Escape") open(false) }
  row.about = (now) => {
    const lines = [now.help, ...(now.options && now.about ? now.options.map((each, at) => `${each}: ${now.about[at]}`) : [])]
    if (help.textContent !== lines.join("")) help.replaceChildren(...lines.map((textContent) => element("p", { textContent })))
  }
  const field = FIELDS[one.kind](id, row, (held) => moved(panel, row, held))
  row.field = field
  const head = element("div", { className: "head" }, label, row.back, ask)
  const value = row.value ? [row.value] : []
  row.box = element("div", { className: `control ${one.kind}` })
  row.box.dataset.name = one.name
  if (one.kind === "switch") {
    head.prepend(field)
    row.box.append(head, help)
  } else {
    head.append(...value)
    row.box.append(head, field, help)
  }
  return row
}

// The document

function element(name, fields, ...children) {
  const made = Object.assign(document.createElement(name), fields)
  made.append(...children)
  return made
}

function place(parent, children) {
  // What stands where it belongs is not touched, and what is gone does not push it aside: it would lose the focus.
  for (const child of [...parent.children]) if (!children.includes(child)) child.remove()
  children.forEach((child, at) => { if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null) })
}
