import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { A_BUDGET } from './support/person.ts';
import { registerRaw } from './support/raw-client.ts';

/* A gateway in production, whose https ends at a proxy before it. The proxy passes any Host on. */

const PUBLIC = 'https://gate.example';

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ toml: `[server]\npublic_url = "${PUBLIC}"\n[authorization]\nenabled = true\n` });
});
afterAll(() => spine.stop());

test('addresses are the public ones, cookies are secure, and the Host decides nothing', async () => {
  const cookies: string[] = [];
  const send = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(spine.origin + path, {
      ...init,
      redirect: 'manual',
      headers: {
        ...(init.headers as Record<string, string>),
        'x-forwarded-host': 'evil.example',
        cookie: cookies.join('; '),
      },
    });
    for (const line of response.headers.getSetCookie()) {
      expect(line).toMatch(/^__Secure-tollgate-/);
      expect(line).toMatch(/; secure/i);
      expect(line).toMatch(/; httponly/i);
      cookies.push(line.split(';', 1)[0]!);
    }
    return response;
  };
  const client = await registerRaw(spine.origin, { resource: `${PUBLIC}/mcp` });
  const begun = await send(client.authorizeUrl().slice(spine.origin.length));
  const page = begun.headers.get('location')!;
  expect([begun.status, page]).toEqual([303, expect.stringMatching(/^\/authorize\/[\w-]+$/)]);
  const answered = await send(`${page}/request`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      'x-tollgate-web': '1',
      origin: PUBLIC,
    },
    body: JSON.stringify(A_BUDGET),
  });
  const { redirect_to: next } = (await answered.json()) as { readonly redirect_to: string };
  expect(next).toMatch(/^https:\/\/gate\.example\/oauth\/authorize\//);
  const done = await send(next.slice(PUBLIC.length));
  const answer = new URL(done.headers.get('location')!);
  expect(answer.searchParams.get('iss')).toBe(PUBLIC);
  const { status, body } = await client.redeem(answer);
  expect(status).toBe(200);
  const listed = await fetch(`${spine.origin}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${body.access_token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      host: 'gate.example',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  expect(listed.status).toBe(200);
  expect(await (await fetch(`${spine.origin}/.well-known/oauth-authorization-server`)).json()).toMatchObject({
    issuer: PUBLIC,
    token_endpoint: `${PUBLIC}/oauth/token`,
  });
});
