// The browser's side of the settings (ui/kit/store.py): the changes that the server has not acknowledged, and the link.
// One object for all components of the page.
//
// A delta is {name: text}: null for "follow the default again"; "*": null for "reset the page's settings first";
// "@name": value for a function of the page. Each has a number and the key of its page.

const PATIENCE = { free: 250, held: 1500 } // ms after which a newer value ends the run under way; `held`: while a thumb is held
const LOST = 2000 // ms without an answer after which the message is sent again
const LEAVING = 5000 // ms for which nothing is sent after another page was asked for, if that does not come
const BACK = 1000 // ms after the browser's Back in which Streamlit may push addresses of earlier answers

const store = (window.ablationStore ??= {
  session: "", // of the server: another one after a restart
  number: 0, // of the last delta that was sent
  page: "", // key of the page whose controls are on screen
  link: {}, // as the server last said it
  waiting: [], // [number, page, delta]: sent, and not acknowledged
  pending: [], // [page, delta]: not sent yet
  held: false, // whether a finger is still on a control
  moved: "", // the page that was changed since its link was written: that is worth an entry of the history
  passed: false, // whether the browser went back or forward to a page that is not drawn yet
  redraws: new Map(), // element -> function that draws it with what was chosen
  leaving: null, // { page, path, until }: another page was asked for, and is not drawn yet
  backUntil: 0,
  presents: new URLSearchParams(location.search).get("present") === "on", // presentation mode, on all pages; in the link

  change(delta, held = false) {
    const last = store.pending.at(-1)
    const [name, ...others] = Object.keys(delta)
    const replaces = last && !others.length && !name.startsWith("@") && name in last[1] && Object.keys(last[1]).length === 1
    if (replaces) last[1] = delta // the newest value alone
    else store.pending.push([store.page, delta])
    store.held = held
    store.moved = store.page
    if (store.waiting.length) store.sendLater(held ? PATIENCE.held : PATIENCE.free)
    else store.send()
    store.redraw() // after the message: it takes up to 15 ms
  },

  release() {
    if (!store.held) return
    store.held = false
    if (store.waiting.length || store.pending.length) store.send()
    else store.writeLink()
  },

  sendLater(ms) {
    const due = performance.now() + ms
    if (store.timer && store.due <= due) return
    clearTimeout(store.timer)
    store.due = due
    store.timer = setTimeout(() => { store.timer = 0; store.send(true) }, ms)
  },

  // Send what is pending, one message at a time. isLate: the answer to the last one is no longer waited for.
  send(isLate = false) {
    if (isLeaving()) return store.sendLater(PATIENCE.free) // it would ask for the page that is being left
    if (!store.say || !isHere() || (store.waiting.length && !isLate) || !store.pending.length) return
    clearTimeout(store.timer)
    store.timer = 0
    for (const [page, delta] of store.pending) store.waiting.push([++store.number, page, delta])
    store.pending = []
    store.sendWaiting()
  },

  // Send all that is not acknowledged. Once more while no script runs: then it was lost with the connection.
  sendWaiting(isAgain = false, isNewPage = false) {
    clearTimeout(store.lost)
    if (!store.waiting.length || !isHere()) return
    const isIdle = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
    if (!isAgain || isNewPage || isIdle) {
      store.say({ session: store.session, held: store.held, deltas: store.waiting, at: performance.now() })
    }
    store.lost = setTimeout(store.sendWaiting, LOST, true)
  },

  // Return what is chosen of a name and not acknowledged: a text, null for "follow again", or undefined.
  chosen(name) {
    const deltas = [...store.waiting.map(([, page, delta]) => [page, delta]), ...store.pending]
    for (const [page, delta] of deltas.reverse()) {
      if (page !== store.page) continue
      if (name in delta) return delta[name]
      if ("*" in delta) return null
    }
  },

  redraw() {
    for (const [element, draw] of store.redraws) element.isConnected ? draw() : store.redraws.delete(element)
  },

  // The end of a run: its pictures have come.
  acknowledge(data, say) {
    if (isLeaving() && data.page === store.leaving.page) { // a late answer of the page that is left
      store.waiting = store.waiting.filter(([number]) => number > data.ack)
      return
    }
    store.leaving = null
    const isNewPage = store.say && store.drawnPage !== data.page // Streamlit drops what the channel of the page before has said
    const isRestarted = store.session && store.session !== data.session // the server knows only what the address said
    if (store.moves !== data.moves && store.drawnPage === data.page) store.moved = data.page
    Object.assign(store, { say, page: data.page, drawnPage: data.page, path: data.path, link: data.link, only: data.only, moves: data.moves })
    if (store.session !== data.session) {
      store.pending = [...store.waiting.map(([, page, delta]) => [page, delta]), ...store.pending]
      Object.assign(store, { session: data.session, number: 0, waiting: [] })
    }
    store.waiting = store.waiting.filter(([number]) => number > data.ack)
    if ((isRestarted || store.passed) && isHere() && !isSame(readLink(), data.link)) store.pending.unshift([store.page, { "*": null, ...readLink() }])
    if (isHere()) store.passed = false
    store.redraw()
    if (isNewPage && store.waiting.length) store.sendWaiting(true, true)
    else if (store.pending.length) store.send()
    else if (!store.waiting.length) store.writeLink()
  },

  // Another page is asked for. What was chosen here and is not acknowledged stands in the link of this page, for Back.
  leave() {
    for (const [page, delta] of [...store.waiting.map((sent) => sent.slice(1)), ...store.pending]) {
      for (const [name, text] of page === store.page ? Object.entries(delta) : []) {
        if (name === "*") store.link = {}
        else if (text === null) delete store.link[name]
        else if (/^\w+$/.test(name)) store.link[name] = text
      }
    }
    store.held = false
    store.writeLink()
    store.leaving = { page: store.page, path: store.path, until: performance.now() + LEAVING }
  },

  // Write the link when nothing is under way. A choice is an entry of the history; what a link was mended to takes its place.
  writeLink() {
    if (store.held || store.passed || !isHere()) return
    const address = addressOf(store.link)
    if (address !== location.pathname + location.search && !isSame(readLink(true), { ...store.link, ...apart() })) {
      store.writes = true
      history[store.moved === store.page ? "pushState" : "replaceState"](history.state, "", address)
      store.writes = false
    }
    store.moved = ""
  },
})

// Whether an address is that of a page, of which `end` is what it ends with; nothing for the start page.
const isPage = (pathname, end) => (end ? pathname.endsWith(end) : !PATHS.some((path) => pathname.endsWith(path)))
// Keys that let somebody in (ui/kit/address.py) stay in no entry of the history.
const SECRETS = ["key", "teacher"]
const hasSecret = () => SECRETS.some((name) => new URLSearchParams(location.search).has(name))
const withoutSecrets = () => {
  const address = new URL(location)
  for (const name of SECRETS) address.searchParams.delete(name)
  return address
}
const embedded = () => [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("embed"))
// What a link has beside the settings: a teacher's limits, and presentation mode.
const apart = () => ({ ...(store.only ? { only: store.only } : {}), ...(store.presents ? { present: "on" } : {}) })
const isLeaving = () => store.leaving && performance.now() < store.leaving.until
const isHere = () => isPage(location.pathname, store.path)
const isSame = (one, other) => JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort())

function readLink(withApart = false) {
  const isSetting = (name) => !name.startsWith("embed") && (withApart || !["only", "present"].includes(name))
  const params = [...new URLSearchParams(location.search)].filter(([name]) => isSetting(name))
  return Object.fromEntries(params)
}

function addressOf(link, path = location.pathname) {
  const query = String(new URLSearchParams([...embedded(), ...Object.entries({ ...apart(), ...link })])).replaceAll("%7E", "~")
  return path + (query ? `?${query}` : "")
}

// Turn to another page of the app as the browser's Back would, which Streamlit follows without loading all of it again. The mark
// `menu`, which the address has while the page is asked for, says that it was no Back (ui/kit/address.py).
function turnTo(url, link) {
  store.leave()
  const address = addressOf(link, new URL(url).pathname)
  store.turning = true
  history.pushState({}, "", `${address}${address.includes("?") ? "&" : "?"}menu=`)
  window.dispatchEvent(new PopStateEvent("popstate"))
  history.replaceState({}, "", address)
  store.turning = false
}

if (!store.listens) {
  store.listens = true
  // Streamlit pushes the address of the page of each answer. One that comes late would stand on top of where the menu, or the
  // browser's Back, has led since; and the link of a page is written here.
  const push = history.pushState.bind(history)
  history.pushState = (state, title, address) => {
    if (hasSecret()) return history.replaceState(state, title, address) // Back would bring the key into the address again
    const path = new URL(address, location).pathname
    const isLate = performance.now() < store.backUntil || (isLeaving() && isPage(path, store.leaving.path))
    if (store.writes || store.turning || !(isLate || path === location.pathname)) push(state, title, address)
  }
  addEventListener("popstate", (event) => { if (event.isTrusted) store.backUntil = performance.now() + BACK }, true)
  addEventListener("click", () => { store.backUntil = 0 }, true)
  addEventListener("popstate", () => {
    if (hasSecret()) history.replaceState(history.state, "", withoutSecrets())
    if (store.turning) return
    store.moved = ""
    if (store.passed || !isHere()) return (store.passed = true) // Streamlit turns to the other page
    store.pending.push([store.page, { "*": null, ...readLink() }])
    store.redraw()
    if (store.waiting.length) store.sendLater(PATIENCE.free)
    else store.send()
  })
  addEventListener("click", (event) => {
    const link = event.composedPath().find((element) => element.matches?.("[data-testid=stPageLink-NavLink]"))
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey // in another tab or window
    if (!link || elsewhere) return
    const url = new URL(link.href)
    if (url.pathname !== location.pathname) return store.leave()
    event.preventDefault()
    event.stopImmediatePropagation()
    store.change({ "*": null, ...Object.fromEntries(url.searchParams) })
  }, true)
  // The connection comes back by itself. A server that was restarted in between learns of this page when it is asked for it.
  const app = document.querySelector("[data-testid=stApp]")
  let wasLost = false
  const watch = () => {
    const isConnected = app.dataset.testConnectionState === "CONNECTED"
    if (wasLost && isConnected) store.say?.({ session: store.session, held: false, deltas: store.waiting, at: performance.now() })
    wasLost = !isConnected
  }
  if (app) new MutationObserver(watch).observe(app, { attributeFilter: ["data-test-connection-state"] })
  matchMedia("(max-width: 640px)").addEventListener("change", store.redraw) // rows of buttons become menus
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => store.release(), true)
}
