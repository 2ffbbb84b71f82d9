// The key of a seat stays in the browser, by the code of the class.

export default function ({ data, setStateValue }) {
  const place = `ablation-lab-class-${data.code}`
  try {
    if (data.key) localStorage.setItem(place, data.key)
    if (!data.asked) setStateValue("kept", localStorage.getItem(place) ?? "")
  } catch { // a browser may forbid it: then the seat lasts as long as the page is open
    if (!data.asked) setStateValue("kept", "")
  }
}
