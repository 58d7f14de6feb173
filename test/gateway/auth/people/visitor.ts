/** A browser that follows redirects, and keeps cookies by origin. */
export interface Visitor {
  /** Goes to an address and follows redirects until a page of the gateway. Resolves with its address. */
  go(url: string): Promise<URL>;
  /** Goes one step. Resolves with the address of the redirect. */
  step(url: string, headers?: Readonly<Record<string, string>>): Promise<URL | null>;
  /** A request of the browser itself, with its cookies. A redirect is not followed. */
  send(url: string, options: RequestInit): Promise<Response>;
  /** A request of a page of the gateway. */
  ask(method: string, path: string, body?: object, headers?: Readonly<Record<string, string>>): Promise<Response>;
  cookies(origin: string): Map<string, string>;
}

export const START = '/api/v1/auth/people/start';

export function openVisitor(gateway: string): Visitor {
  const jars = new Map<string, Map<string, string>>();
  const jarOf = (url: string) => {
    // Ports share cookies.
    const { hostname } = new URL(url);
    if (!jars.has(hostname)) jars.set(hostname, new Map());
    return jars.get(hostname)!;
  };
  const send = async (url: string, options: RequestInit): Promise<Response> => {
    const jar = jarOf(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      redirect: 'manual',
      ...options,
      headers: { ...(options.headers as object), ...(cookie === '' ? {} : { cookie }) },
    });
    for (const line of response.headers.getSetCookie()) {
      const pair = line.split(';')[0]!;
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  };
  const visitor: Visitor = {
    send,
    async step(url, headers = {}) {
      const response = await send(url, { headers });
      const next = response.headers.get('location');
      if (next === null && response.status >= 400)
        throw new Error(`${url}: ${response.status} ${await response.text()}`);
      return next === null ? null : new URL(next, url);
    },
    async go(url) {
      for (let steps = 0; steps < 12; steps += 1) {
        const next = await visitor.step(url);
        if (next === null) throw new Error(`${url} leads nowhere`);
        if (next.origin === new URL(gateway).origin && !next.pathname.startsWith('/api/')) return next;
        url = next.href;
      }
      throw new Error('too many redirects');
    },
    ask: (method, path, body, headers = {}) =>
      send(gateway + path, {
        method,
        headers: {
          'sec-fetch-site': 'same-origin',
          'x-tollgate-web': '1',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    cookies: (origin) => jarOf(origin),
  };
  return visitor;
}
