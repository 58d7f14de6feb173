import { hash } from 'node:crypto';

/* The page for the person, where an error can be told to no client: it is not known, or its address is not. */

/** The look of the web pages. They are not asked for it, because the browser may load nothing here. */
const STYLE = [
  ':root{color-scheme:light dark}',
  'body{margin:0;min-height:100vh;display:grid;place-items:center;background:light-dark(#fafaf8,#101813);',
  "color:light-dark(#14281d,#e8efe9);font:15px/24px Inter,ui-sans-serif,system-ui,-apple-system,'Segoe UI',sans-serif}",
  'main{box-sizing:border-box;width:min(32rem,100% - 2rem);margin:1rem;padding:1.5rem;border-radius:12px;',
  'background:light-dark(#fff,#17211b);border:1px solid light-dark(#dfe5e1,#2b3a31)}',
  'h1{margin:0;font-size:21px;line-height:28px}p{margin:12px 0 0;overflow-wrap:anywhere}',
  '.soft{color:light-dark(#52625a,#9db0a4);font-size:13.5px}',
].join('');

/** Of answers that a browser may show: one is a form (`form_post`), whose script the library adds to the policy. */
export const PAGE_HEADERS = {
  'content-security-policy': "default-src 'none'; script-src; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

export const ERROR_PAGE_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; frame-ancestors 'none'`,
  'content-type': 'text/html; charset=utf-8',
};

/** `code`: of RFC 6749. `why`: a sentence that says what to do; it may have words of strangers. */
export const errorPage = (code: string, why = ''): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>This sign-in cannot go on</title>
<style>${STYLE}</style>
<main>
<h1>This sign-in cannot go on</h1>
<p>${asText(why)}</p>
<p>Go back to the program that sent you here, and try again.</p>
<p class="soft">Error: <code>${asText(code)}</code></p>
</main>
</html>
`;

const asText = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
