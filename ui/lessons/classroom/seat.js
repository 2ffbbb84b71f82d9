// The key of a seat stays in the browser, by the code of the class. It is told as it changes, and so goes along with whatever is
// asked of the server from then on: of one that was started again, too.

const told = new Map() // place -> key

export default function ({ data, setStateValue }) {
  const place = `ablation-lab-class-${data.code}`
  let key = data.key
  try {
    if (key) localStorage.setItem(place, key)
    else key = localStorage.getItem(place) ?? ""
  } catch { /* a browser may forbid it: then the seat lasts as long as the page is open */ }
  if (told.get(place) === key && data.asked) return
  told.set(place, key)
  setStateValue("kept", key)
}
