/** The address of the script that pages outside of the web pages begin with. */
export const THEME_PATH = '/docs/static/theme.js';

/** The theme that was chosen on the web pages, before anything is painted. */
export const THEME_SCRIPT =
  "const theme = localStorage.getItem('tollgate.theme'); if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;";
