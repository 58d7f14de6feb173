/* The parts that the front page and the pages of the guide share. */

export const FIRST_SCRIPT_PATH = '/docs/static/first.js';

/** Links to the pages, in the order of the header of the web pages (web/src/app/header.tsx). */
export const NAV = [
  ['/marketplace', 'Marketplace'],
  ['/rankings', 'Rankings'],
  ['/providers', 'Providers'],
  ['/playground', 'Playground'],
  ['/docs/guide', 'Guide'],
  ['/docs', 'API reference'],
]
  .map(([href, name]) => `<a href="${href}">${name}</a>`)
  .join('');
/** The same for narrow screens. */
export const NAV_MENU = `<details class="menu"><summary aria-label="Menu"><svg aria-hidden="true" viewBox="0 0 18 18" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"><path d="M2 4.5h14M2 9h14M2 13.5h14"/></svg></summary><nav aria-label="Main">${NAV}</nav></details>`;

/**
 * Runs before the first paint. Applies the theme that the visitor chose on the web pages, and marks the page if they
 * are signed in there (`web/src/api/session.ts`). On the front page Ctrl-K opens the search of the web pages.
 */
export const FIRST_SCRIPT =
  'const page = document.documentElement.dataset;' +
  "const theme = localStorage.getItem('tollgate.theme'); if (theme === 'light' || theme === 'dark') page.theme = theme;" +
  "if (localStorage.getItem('tollgate.signed-in') !== null) page.signedIn = '';" +
  "if (location.pathname === '/') addEventListener('keydown', (event) => { if (event.key !== 'k' || !(event.ctrlKey || event.metaKey)) return;" +
  " event.preventDefault(); location.assign('/marketplace#search'); });";

export const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#14281d"/>' +
  '<rect x="7" y="9" width="4" height="16" rx="1.5" fill="#f4c95d"/><rect x="9" y="11" width="18" height="4" rx="2" fill="#fff"/>' +
  '<rect x="14" y="11" width="4" height="4" fill="#1f7a4d"/><rect x="22" y="11" width="3" height="4" fill="#1f7a4d"/></svg>';
