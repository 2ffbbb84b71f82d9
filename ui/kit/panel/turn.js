// Turns to another page of the app as the browser's Back would, which Streamlit follows without loading all of it again; the mark,
// which the address has while the page is asked for, says that it was no Back (ui/kit/session/address.py).
function turn(to) {
  for (const [name, value] of new URLSearchParams(location.search)) if (name.startsWith("embed")) to.searchParams.append(name, value)
  const asked = new URL(to)
  asked.searchParams.append("menu", "")
  history.pushState({}, "", asked)
  window.dispatchEvent(new PopStateEvent("popstate"))
  history.replaceState({}, "", to)
}
