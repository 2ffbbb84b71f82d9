// Words to write with, in a fold: a click on one puts it behind the text of another control of the same component, in the
// browser, so that quick hands lose none. One stop for Tab; the arrows lead from word to word.

function lexicon(panel) {
  const STILL = 700 // ms without a press after which the words may change their places
  const row = { kind: "lexicon", pressed: -Infinity }
  const summary = element("summary", {})
  const list = element("div", { className: "words-of" })
  row.box = element("details", { className: "lexicon" }, summary, list)
  const all = () => [...list.querySelectorAll("button")]
  let keys = false // whether it is worked by keys: then the word that has the focus is in sight
  const to = (word, focus) => {
    for (const each of all()) each.tabIndex = each === word ? 0 : -1
    if (focus) word?.focus({ preventScroll: !keys })
  }
  list.onclick = (event) => {
    const word = event.target.closest("button")
    if (!word) return
    row.pressed = performance.now()
    keys = !event.detail
    to(word, true)
    panel.rows.get(row.into)?.append(word.textContent)
  }
  list.onkeydown = (event) => {
    const words = all(), at = words.indexOf(event.target)
    const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: words.length - 1 }[event.key]
    if (next === undefined || at < 0) return
    event.preventDefault()
    keys = true
    to(words[Math.max(0, Math.min(words.length - 1, next))], true)
  }
  row.box.onkeydown = (event) => {
    if (event.key !== "Escape" || !row.box.open) return
    event.preventDefault()
    row.box.open = false
    summary.focus()
  }
  row.show = (one) => {
    row.into = one.into
    row.box.dataset.name = one.name
    update(summary, { textContent: one.label })
    clearTimeout(row.later)
    const words = JSON.stringify(one.groups)
    if (row.words === words) return
    const wait = row.pressed + STILL - performance.now()
    if (wait > 0) {
      row.later = setTimeout(() => row.show(one), wait)
      return
    }
    row.words = words
    const held = list.contains(document.activeElement) ? document.activeElement.textContent : undefined
    const named = (textContent) => element("div", { className: "title-of", textContent })
    const groups = one.groups.map(group => {
      const words = group.words.map((textContent) => element("button", { type: "button", textContent, tabIndex: -1 }))
      const made = element("div", { className: "kind" }, element("span", { className: "name", textContent: group.name }), ...words)
      made.setAttribute("role", "group")
      made.setAttribute("aria-label", `${group.name} (${one.titles[group.next ? 0 : 1].toLowerCase()})`)
      return made
    })
    const first = groups.filter((_, at) => one.groups[at].next), others = groups.filter((_, at) => !one.groups[at].next)
    if (!keys) list.scrollTop = 0 // what can come next
    list.replaceChildren(named(one.titles[0]), ...first, ...(others.length ? [named(one.titles[1]), ...others] : []))
    to(all().find((each) => each.textContent === held) ?? all()[0], held !== undefined) // whoever wrote by keys goes on from there
  }
  return row
}
