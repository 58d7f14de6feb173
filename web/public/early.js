// Runs before the first paint. Applies the chosen theme, keeps what is typed for a search that another page has opened
// (web/src/app/search-button.tsx), and starts the requests that the page needs first.
const theme = localStorage.getItem('tollgate.theme');
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
if (sessionStorage.getItem('tollgate.search') !== null)
  addEventListener('keydown', (event) => {
    const words = sessionStorage.getItem('tollgate.search');
    if (words === null || event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    sessionStorage.setItem('tollgate.search', words + event.key);
  });
const boot = /** @type {{ readonly early?: readonly string[] }} */ (
  JSON.parse(document.getElementById('boot').textContent)
);
window.tollgateEarly = new Map(
  (boot.early ?? []).map((path) => [path, fetch(path, { headers: { 'x-tollgate-web': '1' } })]),
);
