/** The address of the script that pages outside of the web pages begin with. */
export const FIRST_SCRIPT_PATH = '/docs/static/first.js';

/**
 * Takes up, before anything is painted, the theme that was chosen on the web pages, and the mark of somebody who is
 * signed in there (`web/src/api/session.ts`).
 */
export const FIRST_SCRIPT =
  'const page = document.documentElement.dataset;' +
  "const theme = localStorage.getItem('tollgate.theme'); if (theme === 'light' || theme === 'dark') page.theme = theme;" +
  "if (localStorage.getItem('tollgate.signed-in') !== null) page.signedIn = '';";
