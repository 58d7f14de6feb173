/**
 * A person with a browser, for sign-ins without one: keeps cookies by their paths, follows redirects on the gateway's
 * own origin alone, and answers the question of the page by its requests.
 */
export interface Person {
  /** Opens the address that a program gave. Resolves with the address of the question, or of the program. */
  open(url: string): Promise<URL>;
  /** What the page shows. */
  look(page: URL): Promise<Response>;
  /** Says yes with these limits. Resolves with the address at which the program gets its answer. */
  allow(page: URL, limits?: object): Promise<URL>;
  refuse(page: URL): Promise<URL>;
  /** A request of the page, with the person's cookies. */
  send(method: string, page: URL, body?: object, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

export const A_BUDGET = {
  limit: 1,
  limit_reset: 'monthly',
  expires_at: new Date(Date.now() + 30 * 24 * 60 * 60_000).toISOString(),
};

export function createPerson(origin: string, key: string): Person {
  // A browser has one cookie for each name and path.
  const jar = new Map<string, { readonly pair: string; readonly path: string }>();
  const keep = (response: Response): Response => {
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...flags] = line.split(';').map((part) => part.trim());
      const name = pair.slice(0, pair.indexOf('='));
      const path = flags.find((flag) => /^path=/i.test(flag))?.slice('path='.length) ?? '/';
      jar.set(`${name} ${path}`, { pair, path });
    }
    return response;
  };
  const cookiesFor = ({ pathname }: URL): string =>
    [...jar.values()]
      .filter(({ path }) => pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`))
      .map(({ pair }) => pair)
      .join('; ');
  const go = async (
    url: URL,
    init: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> } = {},
  ) => {
    const cookie = [cookiesFor(url), init.headers?.['cookie']].filter(Boolean).join('; ');
    return keep(await fetch(url, { ...init, redirect: 'manual', headers: { ...init.headers, cookie } }));
  };

  const open = async (text: string): Promise<URL> => {
    let url = new URL(text);
    while (url.origin === origin && !url.pathname.startsWith('/authorize/')) {
      const response = await go(url);
      const location = response.headers.get('location');
      if (location === null) throw new Error(`${url.pathname} answered ${response.status}: ${await response.text()}`);
      url = new URL(location, url);
    }
    return url;
  };
  const send: Person['send'] = (method, page, body, headers = {}) =>
    go(new URL(`${page.pathname}/request`, origin), {
      method,
      headers: {
        'x-tollgate-web': '1',
        origin,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const goOn = async (response: Response): Promise<URL> => {
    if (response.status !== 200) throw new Error(`the page answered ${response.status}: ${await response.text()}`);
    const { redirect_to: next } = (await response.json()) as { readonly redirect_to: string };
    return open(next);
  };

  return {
    open,
    look: (page) => send('GET', page),
    allow: async (page, limits = A_BUDGET) =>
      goOn(await send('POST', page, limits, { authorization: `Bearer ${key}` })),
    refuse: async (page) => goOn(await send('DELETE', page)),
    send,
  };
}
