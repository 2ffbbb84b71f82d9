// The space bar takes the teacher's next step. A focused button or link keeps it, and two presses in a row are one.

const PAUSE = 700 // ms in which nobody has seen the next step yet

let last = -Infinity

function keep(event) {
  if (event.key !== " ") return
  const isOwn = event.target.closest("button, summary, a[href]")
  const isQuick = event.repeat || event.timeStamp - last < PAUSE
  if (isOwn || (isQuick && !event.target.closest("input, textarea, select, [contenteditable]"))) event.stopImmediatePropagation()
  else last = event.timeStamp
}

export default function () {
  addEventListener("keydown", keep, true)
  return () => removeEventListener("keydown", keep, true)
}
