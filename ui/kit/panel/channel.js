// The last element of a run: what the browser says to the server, and the acknowledgement of what it said.
export default ({ data, setStateValue }) => store.acknowledge(data, (message) => setStateValue("said", message))
