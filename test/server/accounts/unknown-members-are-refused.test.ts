import { describe, expect, it } from 'vitest';
import { readOpenApi } from '../../support/open-api.ts';
import { spineOfFile } from '../../support/of-file.ts';

interface Described {
  readonly paths: Record<
    string,
    Record<string, { requestBody?: { content: Record<string, { schema: { additionalProperties?: unknown } }> } }>
  >;
}
interface Refused {
  readonly error: { readonly type: string; readonly message: string; readonly param: string };
}

const spine = spineOfFile();

/** Requests that move money, or give rights. */
const BEARING = /\/(?:keys|accounts|topup|deposits|withdrawals|wallets)\b/;

describe('a body with a member that is not known', () => {
  it('is refused on every endpoint that bears money or rights', async () => {
    const { paths } = await readOpenApi<Described>(spine.origin);
    const open = Object.entries(paths).flatMap(([path, verbs]) =>
      Object.entries(verbs)
        .filter(([verb]) => BEARING.test(path) && ['post', 'put', 'patch'].includes(verb))
        .map(
          ([verb, { requestBody }]) =>
            [`${verb} ${path}`, requestBody?.content['application/json']?.schema.additionalProperties] as const,
        ),
    );
    expect(open.length).toBeGreaterThanOrEqual(12);
    expect(open.filter(([, more]) => more !== false)).toEqual([]);
  });

  it('names the member and the one that was meant, and does nothing', async () => {
    const admin = { authorization: `Bearer ${spine.adminKey}` };
    const at = `${spine.origin}/admin/v1/accounts`;
    const cases: [url: string, headers: Record<string, string>, body: object, param: string, says: RegExp][] = [
      [
        `${spine.url}/keys`,
        {},
        { limits: 5 },
        'limits',
        /limits is not known here; did you mean limit\? Known are name, label, limit/,
      ],
      [`${spine.url}/keys`, {}, { allowed_servces: ['a/b'] }, 'allowed_servces', /did you mean allowed_services\?/],
      [`${spine.url}/keys`, {}, { name: 'x', 'zz\u0001zz': 1 }, 'zzzz', /^zzzz is not known here/],
      [`${spine.url}/deposits/claim`, {}, { account: 'y' }, 'account', /this request takes no members in its body/],
      [at, admin, { name: 'acme', lable: 'Acme' }, 'lable', /did you mean label\?/],
      [
        `${at}/${spine.account}/credit`,
        admin,
        { amount_usd: 1, reference: 'r', currency: 'EUR' },
        'currency',
        /currency is not known here/,
      ],
      [`${at}/${spine.account}/keys`, admin, { limits: 5 }, 'limits', /did you mean limit\?/],
    ];
    for (const [url, headers, body, param, says] of cases) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
      const what = `${url} ${JSON.stringify(body)}`;
      expect.soft(response.status, what).toBe(400);
      const { error } = (await response.json()) as Refused;
      expect.soft(error, what).toMatchObject({ type: 'invalid_request', param });
      expect.soft(error.message, what).toMatch(says);
    }
    const { data } = (await (await spine.get('/keys')).json()) as { data: unknown[] };
    expect(data).toHaveLength(1);
    expect((await spine.balance()).available).toBe(100_000_000n);
    expect(await spine.faults()).toEqual([]);
  });
});
