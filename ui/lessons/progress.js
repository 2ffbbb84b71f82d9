// Predictions stay in the browser. When the page opens, what is kept is told to the server; from then on what it says is kept.

const PLACE = "ablation-lab-lessons"

function kept() {
  try { return JSON.parse(localStorage.getItem(PLACE)) || {} } catch { return {} } // a browser may forbid it
}

export default function ({ data, setTriggerValue }) {
  if (!data.loaded) {
    setTriggerValue("kept", JSON.stringify(kept()))
    return
  }
  const all = { ...kept(), ...data.entries } // another tab may have kept more
  for (const name of data.gone) if (!(name in data.entries)) delete all[name]
  try { localStorage.setItem(PLACE, JSON.stringify(all)) } catch { /* then only as long as the page is open */ }
}
