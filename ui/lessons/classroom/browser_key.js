// The key of a seat, or of a class, stays in the browser. It is sent when it changes, and then goes along with every message: also to
// a server that was started again.

const told = new Map() // place -> key

export default function ({ data, setStateValue }) {
  const place = data.place
  let key = data.key
  try {
    if (key) localStorage.setItem(place, key)
    else key = localStorage.getItem(place) ?? ""
  } catch { /* storage may be forbidden: then the key lasts as long as the page is open */ }
  if (told.get(place) === key && data.asked) return
  told.set(place, key)
  setStateValue("kept", key)
}
