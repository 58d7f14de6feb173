/* The parts that the front page and the pages of the guide share. */

export const FIRST_SCRIPT_PATH = '/docs/static/frame.js';

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
/** The choice of a theme, as the web pages have it (web/src/app/theme-switch.tsx). It works by FIRST_SCRIPT. */
export const THEME_SWITCH = `<div class="theme" role="group" aria-label="Theme">${[
  [
    'light',
    'Light theme',
    '<circle cx="9" cy="9" r="3"/><path d="M9 1.5v1M9 15.5v1M1.5 9h1M15.5 9h1M3.7 3.7l.7.7M13.6 13.6l.7.7M3.7 14.3l.7-.7M13.6 4.4l.7-.7"/>',
  ],
  [
    'system',
    'Theme of the system',
    '<rect x="2" y="3" width="14" height="9" rx="1.5"/><path d="M6.5 15.5h5M9 12v3.5"/>',
  ],
  ['dark', 'Dark theme', '<path d="M15.5 10.2A6.7 6.7 0 1 1 7.8 2.5a5.2 5.2 0 0 0 7.7 7.7z"/>'],
]
  .map(
    ([name, label, drawing]) =>
      `<button type="button" data-choice="${name}" aria-label="${label}" title="${label}" aria-pressed="false"><svg aria-hidden="true" viewBox="0 0 18 18" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">${drawing}</svg></button>`,
  )
  .join('')}</div>`;
/** The same for narrow screens. */
export const NAV_MENU = `<details class="menu"><summary aria-label="Menu"><svg aria-hidden="true" viewBox="0 0 18 18" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"><path d="M2 4.5h14M2 9h14M2 13.5h14"/></svg></summary><nav aria-label="Main">${NAV}${THEME_SWITCH}</nav></details>`;

/**
 * Runs before the first paint. Applies the theme that the visitor chose on the web pages, and marks the page if they
 * are signed in there (`web/src/api/session.ts`, `web/src/api/operator.ts`). On the front page Ctrl-K opens the search
 * of the web pages. What is typed while that loads is kept for it (`web/src/app/search-button.tsx`).
 */
export const FIRST_SCRIPT =
  'const page = document.documentElement.dataset;' +
  "const theme = localStorage.getItem('tollgate.theme'); if (theme === 'light' || theme === 'dark') page.theme = theme;" +
  "if (localStorage.getItem('tollgate.signed-in') !== null) page.signedIn = '';" +
  "if (localStorage.getItem('tollgate.operator') !== null) page.operator = '';" +
  'const mark = () => { for (const one of document.querySelectorAll("[data-choice]")) one.ariaPressed = String(one.dataset.choice === (page.theme ?? "system")); };' +
  "addEventListener('DOMContentLoaded', mark); addEventListener('click', ({ target }) => { const chosen = target.closest('[data-choice]')?.dataset.choice;" +
  " if (chosen === undefined) return; if (chosen === 'system') { localStorage.removeItem('tollgate.theme'); delete page.theme; }" +
  " else { localStorage.setItem('tollgate.theme', chosen); page.theme = chosen; } mark(); });" +
  "if (location.pathname === '/') addEventListener('keydown', (event) => { const { key } = event; const words = sessionStorage.getItem('tollgate.search');" +
  " const isCommand = event.ctrlKey || event.metaKey; if (isCommand ? key !== 'k' : words === null || key.length !== 1 || event.altKey) return;" +
  " event.preventDefault(); sessionStorage.setItem('tollgate.search', isCommand ? '' : words + key); if (isCommand) location.assign('/marketplace#search'); });";

export const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#14281d"/>' +
  '<rect x="7" y="9" width="4" height="16" rx="1.5" fill="#f4c95d"/><rect x="9" y="11" width="18" height="4" rx="2" fill="#fff"/>' +
  '<rect x="14" y="11" width="4" height="4" fill="#1f7a4d"/><rect x="22" y="11" width="3" height="4" fill="#1f7a4d"/></svg>';
