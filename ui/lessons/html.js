// HTML of lessons and classes. It is patched, not replaced: a bar whose width changes moves there.
// A link with data-set changes settings; its address is for a new tab.

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  root.onclick = follow
  if (root.shown === data) return
  root.shown = data
  const template = document.createElement("template")
  template.innerHTML = data
  patch(root, template.content)
  scale(root.querySelector(".slide"))
}

function follow(event) {
  const link = event.target.closest("a[data-set]")
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  store.change(JSON.parse(link.dataset.set))
  document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0)
}

function patch(old, next) {
  const children = [...next.childNodes]
  while (old.childNodes.length > children.length) old.lastChild.remove()
  children.forEach((child, at) => {
    const mine = old.childNodes[at]
    if (!mine) old.append(child)
    else if (mine.nodeName !== child.nodeName) mine.replaceWith(child)
    else if (mine.nodeType !== Node.ELEMENT_NODE) mine.data = child.data
    else {
      for (const { name } of [...mine.attributes]) if (!child.hasAttribute(name)) mine.removeAttribute(name)
      for (const { name, value } of child.attributes) if (mine.getAttribute(name) !== value) mine.setAttribute(name, value)
      patch(mine, child)
    }
  })
}

// A slide is drawn for 1280 × 720 and fills a larger screen.
function scale(slide) {
  if (!slide) return
  const fit = () => { slide.style.zoom = Math.max(1, Math.min(innerWidth / 1280, innerHeight / 720)) }
  fit()
  window.onresize = fit
}
