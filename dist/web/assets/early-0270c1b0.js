// Runs before the first paint. Applies the chosen theme, and starts the requests that the page needs first.
const theme = localStorage.getItem('tollgate.theme');
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
const boot = /** @type {{ readonly early?: readonly string[] }} */ (
  JSON.parse(document.getElementById('boot').textContent)
);
window.tollgateEarly = new Map(
  (boot.early ?? []).map((path) => [path, fetch(path, { headers: { 'x-tollgate-web': '1' } })]),
);
