/** The path of the script that runs first on pages that aren't part of the web pages. */
export const FIRST_SCRIPT_PATH = '/docs/static/first.js';

/**
 * Runs before the first paint. Applies the theme that the visitor chose on the web pages, and marks the page if they
 * are signed in there (`web/src/api/session.ts`).
 */
export const FIRST_SCRIPT =
  'const page = document.documentElement.dataset;' +
  "const theme = localStorage.getItem('tollgate.theme'); if (theme === 'light' || theme === 'dark') page.theme = theme;" +
  "if (localStorage.getItem('tollgate.signed-in') !== null) page.signedIn = '';";
