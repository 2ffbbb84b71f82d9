// The drawing of a block. Where a page takes clicks, each part is a button that says what a click on it does.

const drawn = new WeakMap()
const hands = new WeakMap()

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  if (drawn.get(root) === data.picture) return
  drawn.set(root, data.picture)
  const [picture, tip] = root.children
  const place = [...picture.querySelectorAll(".part")].find((each) => each.matches(":focus"))?.dataset.place
  picture.innerHTML = data.picture
  picture.classList.toggle("clicked", data.clicked)
  tip.style.display = "none"
  if (!data.clicked) return
  const hide = () => { tip.style.display = "none" }
  const click = (part) => {
    hide()
    store.change({ [data.set]: part })
  }
  if (!hands.has(root)) hands.set(root, new Hand(picture))
  hands.get(root).click = click
  for (const part of picture.querySelectorAll(".part")) {
    part.setAttribute("role", "button")
    part.setAttribute("tabindex", "0")
    part.setAttribute("aria-label", part.dataset.words)
    if (data.gone) part.setAttribute("aria-pressed", data.gone.includes(part.dataset.part))
    const show = () => {
      tip.textContent = part.dataset.words
      tip.style.display = "block"
      if (tip.classList.toggle("hint", Boolean(picture.querySelector(".above")))) return
      tip.style.top = `${(part.getBoundingClientRect().bottom - root.getBoundingClientRect().top) * (root.clientWidth / root.getBoundingClientRect().width) + 6}px`
    }
    Object.assign(part, { onpointerenter: show, onfocus: show, onpointerleave: hide, onblur: hide })
    part.onclick = (event) => { if (!event.detail) click(part.dataset.part) } // by a screen reader; those of a pointer: see Hand
    part.onkeydown = (event) => {
      if (event.key === "Escape") hide()
      if (event.key !== "Enter" && event.key !== " ") return
      event.preventDefault()
      click(part.dataset.part)
    }
    if (part.dataset.place === place) { part.focus(); hide() } // what was clicked is drawn anew
  }
}

// Presses of a mouse, a pen or a finger. What is pressed is the part that the hand aimed at: what is pressed on a page may move
// the drawing, and whoever goes on at once would press what has come into that place. And it is drawn anew
// while a button is down, of which the browser makes no click.
class Hand {
  static REACTION = 400 // ms before anybody sees that the drawing has moved, and aims anew
  static WATCHED = 2000 // ms after a press, wherever it was, or an Enter, in which the drawing is looked at
  static SLIP = 8 // pixels

  constructor(picture) {
    Object.assign(this, { picture, past: [], down: null, elsewhere: false, watched: 0 })
    const heard = { pointerdown: this.#pressed, pointerup: this.#letGo, pointercancel: this.#forget, mousedown: this.#counted, mouseup: this.#kept, click: this.#kept, scroll: this.#scrolled, keydown: this.#typed }
    for (const [name, what] of Object.entries(heard)) {
      const listen = (event) => (picture.isConnected ? what.call(this, event) : removeEventListener(name, listen, true))
      addEventListener(name, listen, true)
    }
  }

  #places = () => [...this.picture.querySelectorAll(".part")].map((each) => ({ part: each.dataset.part, box: each.getBoundingClientRect() }))

  #notice() {
    const now = performance.now(), places = this.#places()
    const same = ({ part, box }, at) => places[at]?.part === part && Math.hypot(places[at].box.x - box.x, places[at].box.y - box.y) < 1
    if (this.last && !(this.last.length === places.length && this.last.every(same))) this.past.push({ places: this.last, until: now })
    this.last = places
  }

  #look = () => {
    this.#notice()
    // Once a frame is drawn all places are known, and to ask for them costs nothing.
    if (performance.now() < this.watched && this.picture.isConnected) requestAnimationFrame(() => setTimeout(this.#look))
    else this.last = null
  }

  // The part that stood there when the hand set out, where the drawing has moved since: the smallest, as heads lie on their block.
  #aimedAt({ clientX: x, clientY: y, timeStamp }) {
    this.past = this.past.filter(({ until }) => timeStamp - until < Hand.REACTION)
    const there = this.past[0]?.places.filter(({ box }) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom) ?? []
    return there.sort((one, other) => one.box.width * one.box.height - other.box.width * other.box.height)[0]?.part
  }

  #under = (event) => event.composedPath().find((each) => each.matches?.(".part") && this.picture.contains(each))?.dataset.part

  #pressed(event) {
    this.#forget()
    if (!event.isPrimary || event.button) return
    if (this.last) this.#notice() // it may have moved in the frame that this press comes with, which nobody has seen yet
    const here = this.#under(event), aimed = this.#aimedAt(event) ?? here
    this.wasAPart = this.isAPart // whether the press before met a part
    this.isAPart = Boolean(aimed)
    if (!aimed) return
    this.down = { part: aimed, x: event.clientX, y: event.clientY }
    this.elsewhere = aimed !== here
    this.#kept(event)
  }

  #watch() {
    const sleeps = performance.now() >= this.watched
    this.watched = performance.now() + Hand.WATCHED
    if (sleeps) this.#look()
  }

  // Another text can bring a sentence above the drawing. Keys that move a slider bring none, and a look at each of their frames costs a fifth of a picture.
  #typed({ key }) { if (key === "Enter") this.#watch() }

  #letGo(event) {
    const { down } = this
    this.down = null
    this.#watch()
    if (!down) return
    this.#kept(event)
    if (Math.hypot(event.clientX - down.x, event.clientY - down.y) > Hand.SLIP && this.#under(event) !== down.part) return
    this.click(down.part)
  }

  // The second press of a double click that began elsewhere takes no part that has come under it.
  #counted(event) {
    this.#kept(event)
    if (event.detail > 1 && !this.wasAPart) this.#forget()
  }

  #forget() { this.down = null; this.elsewhere = false }

  // Whoever scrolls sees it move.
  #scrolled() { this.past = []; this.last = null }

  // What lies there now has nothing to do with this press. A click by keys, whenever it comes, is no part of it.
  #kept(event) {
    if (!this.elsewhere || (event.type === "click" && !event.detail)) return
    event.preventDefault()
    event.stopImmediatePropagation()
  }
}
