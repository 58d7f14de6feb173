/** Hosts recognise by this scheme what they must render. */
const UI = 'ui://';

/**
 * A service's URI, or URI template, in the aggregate: `<slug>+<uri>`. `ui://…` keeps its scheme and becomes
 * `ui://<slug>/…`.
 */
export function exposeUri(slug: string, uri: string): string {
  return uri.startsWith(UI) ? `${UI}${slug}/${uri.slice(UI.length)}` : `${slug}+${uri}`;
}

/**
 * The slug of an exposed URI, and the service's own URI; null for a URI without a slug. A slug has neither `+` nor `/`.
 */
export function splitUri(exposed: string): { readonly slug: string; readonly uri: string } | null {
  const ui = exposed.startsWith(UI);
  const from = ui ? UI.length : 0;
  const at = exposed.indexOf(ui ? '/' : '+', from);
  if (at <= from) return null;
  const rest = exposed.slice(at + 1);
  return { slug: exposed.slice(from, at), uri: ui ? UI + rest : rest };
}
