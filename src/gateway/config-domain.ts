/** What is wrong with a domain that wallets sign in for, or null: a host in lower case as browsers write it, with a port where it is not the scheme's own. */
export function domainFault(domain: string): string | null {
  const url = URL.parse(`https://${domain}`);
  if (!url || url.host === '' || url.pathname !== '/' || url.search || url.hash || url.username || url.password) return 'is not a host';
  if (url.host !== domain && `${url.host}:443` !== domain) return `is written ${url.host}`;
  return null;
}
