import { expect, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { startTunnelSpine } from '../../../support/tunnel-spine.ts';
import { solanaWallet } from '../../../support/wallets.ts';

// A gateway admits no provider until its file says so, and its own names stay its own.

const CLOSED = { env: { TOLLGATE_PROVIDERS: undefined } };

test.each([
  ['without a line', '', CLOSED],
  ['with "nobody"', '[tunnel]\nproviders = "nobody"', {}],
  ['with an empty list', '[tunnel]\nproviders = []', {}],
])('%s nobody is let in, and the proxy does not try again', async (_how, toml, options) => {
  const world = await startTunnelSpine(toml, options);
  const proxy = await world.dialIn({ services: offeredModel({ url: 'http://127.0.0.1:9' }), ready: false });
  expect(await proxy.closed).toBe(2);
  expect(await proxy.logged('this provider may not connect here')).toMatchObject({
    status: 403,
    message: `This gateway lets no provider in. Its operator can admit you, ${proxy.id}, in tunnel.providers`,
  });
  expect(proxy.lines.filter(({ msg }) => msg === 'dialling the router')).toHaveLength(1);
});

test('a wallet that dials a gateway without an address of its own is told so, and the log of the gateway too', async () => {
  const world = await startTunnelSpine('', { env: { TOLLGATE_SIGN_IN_DOMAINS: undefined } });
  const proxy = await world.dialIn({ services: offeredModel({ url: 'http://127.0.0.1:9' }), ready: false });
  const cause = /operator has not told it its own address\. The operator sets server\.public_url/;
  expect(await proxy.logged('the router does not accept the credential')).toMatchObject({
    status: 401,
    message: expect.stringMatching(cause) as string,
  });
  const line = world.spine.logs.find((one) => one.includes('a dial was refused'));
  expect(JSON.parse(line!)).toMatchObject({ reason: expect.stringMatching(cause) as string });
});

test('names of the operator, and names that look like them or like those of others, are refused', async () => {
  const world = await startTunnelSpine(
    '[tunnel]\nshared_names = ["test/model", "own/more/*", "open/*"]\n[[models]]\nname = "own/large"\nprovider_name = "Own"\npricing = { prompt = 1, completion = 2 }\nparams = { model = "m", api_base = "{provider}" }',
  );
  const url = 'http://127.0.0.1:9';
  let count = 0;
  const dial = (name: string, provider = `Seller ${(count += 1)}`, wallet = solanaWallet(), ready = true) =>
    world.dialIn({ services: offeredModel({ url, name, provider }), wallet, ready });
  const refused = async (name: string, provider?: string) => {
    const proxy = await dial(name, provider, solanaWallet(), false);
    const code = await proxy.closed;
    const { key, wrong, right } = await proxy.logged('the router refused');
    return { code, key, wrong, right };
  };

  expect(await refused('own/large')).toMatchObject({
    code: 1,
    key: 'name',
    wrong: '"own/large" is a service of this gateway\'s operator',
    right: expect.stringMatching(/tunnel\.shared_names/) as string,
  });
  for (const name of ['Own/Large', '0wn/large', 'own/1arge', 'own/lar-ge'])
    expect(await refused(name)).toMatchObject({
      wrong: `"${name}" looks like "own/large", a service of this gateway's operator`,
    });
  for (const provider of ['Tollgate', 'T0llgate', 'Operator', 'own'])
    expect(await refused('free/model', provider)).toMatchObject({
      key: 'provider_name',
      wrong: `"${provider}" is reserved: it is, or looks like, a name of this gateway or of its operator`,
    });
  for (const name of ['own/large:free', 'own/large/add', 'Own/Large:online', 'own/small', 'own'])
    expect(await refused(name)).toMatchObject({
      key: 'name',
      wrong: `"${name}" has the same first part as "own/large", a service of this gateway's operator`,
      right: expect.stringMatching(/tunnel\.shared_names/) as string,
    });
  for (const name of ['tollgate', 'T0llgate', 'operator/large'])
    expect(await refused(name)).toMatchObject({
      key: 'name',
      wrong: expect.stringContaining('a name of this gateway itself') as string,
    });

  await dial('own/more/small');
  // A shared name is one that others may use, exactly as it is.
  await dial('test/model');
  expect(await world.endpoints('test/model')).toHaveLength(2);
  expect(await refused('test/Model')).toMatchObject({
    wrong: expect.stringMatching(/looks like "test\/model"/) as string,
  });

  const honest = await dial('honest/m', 'Honest');
  await dial('honest/m', 'Other');
  expect(await world.endpoints('honest/m')).toHaveLength(2);
  expect(await refused('honest/M')).toMatchObject({
    code: 1,
    key: 'name',
    wrong: '"honest/M" looks like "honest/m", which another provider offers',
  });
  // The first part is of whom had it first: who offers the same service may not offer another one with this part.
  const other = solanaWallet();
  await dial('honest/m', 'Third', other);
  for (const [name, wallet] of [
    ['honest/m/search', solanaWallet()],
    ['honest/n', other],
    ['h0nest', solanaWallet()],
  ] as const) {
    const proxy = await dial(name, `Seller of ${name.replaceAll('/', ' ')}`, wallet, false);
    expect(await proxy.closed).toBe(1);
    expect(await proxy.logged('the router refused')).toMatchObject({
      wrong: `"${name}" has the same first part as "honest/m", which another provider offers`,
    });
  }
  // A part that the operator opened is nobody's.
  for (const name of ['open/one', 'open/two']) await dial(name, `Seller of ${name.replace('/', ' ')}`);
  // Also while the honest ones are away, who then come back as before.
  await honest.close();
  expect(await refused('honest/rn')).toMatchObject({ key: 'name' });
  const again = await dial('honest/m', 'Honest', honest.wallet);
  expect(await world.endpoints('honest/m')).toHaveLength(3);
  await again.close();
  await dial('honest/n', 'Honest', honest.wallet);
});

test('a name that a reload adds to the file is no longer sold by others', async () => {
  const world = await startTunnelSpine();
  const upstream = await world.upstream();
  await world.dialIn({ services: offeredModel({ url: upstream.url, name: 'later/own', provider: 'Seller' }) });
  expect(await world.endpoints('later/own')).toMatchObject([{ provider_name: 'Seller' }]);
  world.spine.writeFile(
    '[[models]]\nname = "later/own"\nprovider_name = "Mine"\npricing = { prompt = 1, completion = 2 }\nparams = { model = "m", api_base = "{provider}" }',
  );
  const reload = await fetch(`${world.spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.spine.adminKey}` },
  });
  expect(reload.status).toBe(200);
  expect(await world.endpoints('later/own')).toMatchObject([{ provider_name: 'Mine' }]);
});
