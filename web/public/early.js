// Runs before anything is painted: the theme that was chosen, and the requests that the page will need at once.
const theme = localStorage.getItem('tollgate.theme');
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
const boot = /** @type {{ readonly early?: readonly string[] }} */ (
  JSON.parse(document.getElementById('boot').textContent)
);
window.tollgateEarly = new Map(
  (boot.early ?? []).map((path) => [path, fetch(path, { headers: { 'x-tollgate-web': '1' } })]),
);
