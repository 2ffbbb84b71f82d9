// Predictions stay in the browser. When the page opens, what is kept is told to the server; from then on what it says is kept.

const PLACE = "ablation-lab-lessons"

function kept() {
  try { return JSON.parse(localStorage.getItem(PLACE)) || {} } catch { return {} } // a browser may forbid it
}

let known = null // as this tab has kept it, or found it: only what has changed here is written, another tab may have kept more, or newer

export default function ({ data }) {
  store.page = data.page // a lesson has no other control that says which page this is
  if (!data.loaded) {
    known = kept()
    store.change({ [data.set]: JSON.stringify(known) })
    return
  }
  const all = kept(), before = known ?? all
  for (const [name, entry] of Object.entries(data.entries)) if (JSON.stringify(entry) !== JSON.stringify(before[name])) all[name] = entry
  for (const name of data.gone) if (name in before && !(name in data.entries)) delete all[name]
  known = { ...data.entries }
  try { localStorage.setItem(PLACE, JSON.stringify(all)) } catch { /* then only as long as the page is open */ }
}
