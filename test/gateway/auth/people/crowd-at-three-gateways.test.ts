import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { until } from '../../../support/cluster.ts';
import { type CrowdWorld, isAnswer, persistently, startCrowdWorld } from '../../../support/crowd.ts';
import { type Company, peopleToml, startCompany } from './company.ts';
import { openVisitor, START, type Visitor } from './visitor.ts';

/*
 * Sixty people of a company sign in at once, at three gateways of one database behind one address, and spend the money
 * of their organisation by a key and in the playground, each more than the budget allows. A gateway is killed in the
 * middle and comes back; people are deleted, leave their group and sign out at the company, and keys end.
 */

const PEOPLE = 60;
/** Micro-USD that a person may spend in a month, what a call costs, and how often a person tries in each way. */
const BUDGET = 100;
const COST = 10;
const TRIES = 8;
const FUNDS = 1_000_000;
const ACME = { 'x-tollgate-account': 'tollgate:local:acme' };
const RULES = `[[people.groups]]\ngroup = "staff"\norganisation = "acme"\nbudget = ${BUDGET / 1e6}\n`;
const EXPIRES_MS = 5_000;

let company: Company;
let world: CrowdWorld;
let origin: string;
beforeAll(async () => {
  world = await startCrowdWorld({
    postgresUrl: inject('postgresUrl'),
    async toml(address) {
      company = await startCompany(address);
      return peopleToml(company.issuer, RULES);
    },
  });
  ({ origin } = world);
}, 120_000);
afterAll(async () => {
  await world?.stop();
  await company?.stop();
});

/** What becomes of a person. */
const FATES = ['stays', 'is deleted', 'leaves the group', 'signs out', 'has a key that ends', 'stays'] as const;

/** Calls that the killed gateway had begun: their keys are taken until their locks expire. */
let broken = 0;
/** The status of a call, which is made once. A budget that is used up, or held by locks, says 402. */
async function statusOfCall(send: (headers: Readonly<Record<string, string>>) => Promise<Response>, name: string) {
  const { status } = await persistently(async () => {
    const response = await send({ 'idempotency-key': name, 'content-type': 'application/json' });
    await response.text();
    return response;
  }, isAnswer);
  if (status === 409) broken += 1;
  return status;
}
const CALL = { model: 'test/model', max_tokens: 5, messages: [{ role: 'user', content: '!tokens:5' }] };
const keyStatus = (at: string, key: string): Promise<number> =>
  persistently(async () => {
    const response = await fetch(`${at}/api/v1/credits`, { headers: { authorization: `Bearer ${key}` } });
    await response.text();
    return response;
  }, isAnswer).then(({ status }) => status);
const sessionStatus = (visitor: Visitor) =>
  persistently(() => visitor.ask('GET', '/api/v1/keys'), isAnswer).then(({ status }) => status);

test(
  'each person ends where the company says, within the budget, and the books are right',
  { timeout: 1_200_000 },
  async () => {
    const { here, there, killable } = world;
    await here.openAccount('acme', FUNDS / 1e6);
    const alive = [here, there].map(({ baseUrl }) => baseUrl);
    let signedIn = 0;
    let answered = 0;
    let refused = 0;
    let resume!: () => void;
    const resumed = new Promise<void>((resolve) => (resume = resolve));

    const person = async (index: number): Promise<string> => {
      const name = `person-${index}`;
      const fate = FATES[index % FATES.length]!;
      company.groups.set(name, ['staff']);
      const visitor = openVisitor(origin);
      visitor.cookies(origin).set('person', name);
      const signIn = async () => (await visitor.go(origin + START)).searchParams.get('people');
      const outcome = await persistently(signIn, (one) => one === 'done');
      if (outcome !== 'done') return `signed in: ${outcome}`;
      signedIn += 1;
      const limits = () =>
        fate === 'has a key that ends' ? { expires_at: new Date(Date.now() + EXPIRES_MS).toISOString() } : {};
      const made = await persistently(
        () => visitor.ask('POST', '/api/v1/keys', { label: name, ...limits() }, ACME),
        ({ status }) => status === 201,
      );
      if (made.status !== 201) return `key: ${made.status} ${await made.text()}`;
      const { key } = (await made.json()) as { readonly key: string };

      const byKey = (headers: Readonly<Record<string, string>>) =>
        fetch(`${origin}/api/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, ...headers },
          body: JSON.stringify(CALL),
        });
      const byCookie = (headers: Readonly<Record<string, string>>) =>
        visitor.ask('POST', '/api/v1/chat/completions', CALL, { ...ACME, ...headers });
      const statuses = await Promise.all(
        Array.from({ length: TRIES }, (_, at) => [
          statusOfCall(byKey, `key-${index}-${at}`),
          statusOfCall(byCookie, `play-${index}-${at}`),
        ]).flat(),
      );
      const own = statuses.filter((status) => status === 200).length;
      answered += own;
      refused += statuses.filter((status) => status === 402).length;
      const others = statuses.filter((status) => ![200, 402, 409].includes(status));
      if (own * COST > BUDGET) return `spent ${own * COST}`;
      // A key may end while it is used.
      if (others.some((status) => status !== 401 || fate !== 'has a key that ends')) return `calls: ${others.join()}`;

      const statusesOfKey = () => Promise.all(alive.map((at) => keyStatus(at, key)));
      const everywhere = (status: number) => async () => (await statusesOfKey()).every((one) => one === status);
      // A provider that gives a refresh token once forgets a person whose gateway dies before it has stored the next.
      if (fate !== 'has a key that ends') await resumed;
      if (fate === 'is deleted' || fate === 'leaves the group') {
        if (fate === 'is deleted') company.groups.delete(name);
        else company.groups.set(name, []);
        await persistently(() => company.signOut(name));
        await until(everywhere(401), `the key of ${name} is over`, 60_000);
        // Gateways that know a session look again within 5 seconds.
        await until(async () => (await sessionStatus(visitor)) === 401, `${name} is signed out`, 60_000);
        return fate;
      }
      if (fate === 'has a key that ends') {
        await until(everywhere(401), `the key of ${name} ends`, 60_000);
        return (await sessionStatus(visitor)) === 200 ? fate : 'signed out';
      }
      if (fate === 'signs out') {
        await persistently(() => company.signOut(name));
        await until(async () => (await sessionStatus(visitor)) === 401, `${name} is signed out`, 60_000);
      } else if ((await sessionStatus(visitor)) !== 200) return 'signed out';
      const inTheEnd = await statusesOfKey();
      return inTheEnd.every((status) => status === 200) ? fate : `has a key with ${inTheEnd.join()}`;
    };

    const begun = performance.now();
    const crowd = Promise.all(Array.from({ length: PEOPLE }, (_, index) => person(index)));
    await until(() => answered >= 20, 'people call', 120_000);
    await killable.kill9();
    const atKill = [signedIn, answered];
    await until(() => answered >= 3 * PEOPLE, 'people go on', 120_000);
    await killable.restart();
    resume();
    const ends = await crowd;
    const seconds = (performance.now() - begun) / 1_000;
    console.log(
      `  ${PEOPLE} people in ${seconds.toFixed(1)} s; killed after ${atKill.join(' sign-ins and ')} calls; ${answered} answered, ${refused} beyond the budget, ${broken} broke off`,
    );
    expect(ends).toEqual(ends.map((_, index) => FATES[index % FATES.length]));
    // Those whose calls nothing broke off spent their budgets to the end.
    expect(answered).toBeGreaterThan(PEOPLE);

    const [left] = await world.close(['tollgate:local:acme']);
    const spent = FUNDS - left!;
    // None was paid twice. What broke off may have been answered and paid.
    expect(spent).toBeGreaterThanOrEqual(COST * answered);
    expect(spent).toBeLessThanOrEqual(COST * (answered + broken));
  },
);
