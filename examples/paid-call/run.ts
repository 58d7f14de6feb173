/**
 * `npm run demo:chain`: two chains start, each with USDC on it; a gateway that takes payments on both; a provider
 * that dials in. Then a wallet with USDC and no account makes a paid chat on each chain with `@x402/fetch`, calls
 * again from its balance, and the provider withdraws what it earned. Everything is on free ports of this machine,
 * and gone afterwards.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { styleText } from 'node:util';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import bs58 from 'bs58';
import { privateKeyToAccount } from 'viem/accounts';
import { loadWallet } from '../../src/providers/proxy/wallet/load-wallet.ts';
import { signInHeader } from '../../src/providers/proxy/wallet/wallet.ts';
import { startEvm, startSolana, type DemoChain, type DemoWallet } from './chains.ts';
import { startModel } from './model.ts';
import { freePort, runProgram, startProgram } from './program.ts';

const MODEL = 'delphi/oracle';
const PURSE = 5_000_000n;
const MICRO = 1_000_000;

const stop = new AbortController();

/** Whoever stops the demo does not wait for its calls. */
const request: typeof fetch = (input, init) => fetch(input, { ...init, signal: stop.signal });

type Paint = (style: Parameters<typeof styleText>[0], text: string) => string;

interface Actor {
  readonly chain: DemoChain;
  readonly treasury: DemoWallet;
  readonly payer: DemoWallet;
}

const gatewayFile = (actors: readonly Actor[]) =>
  // A chain whose treasury gets its token account with this start is asked again soon.
  '[payments]\nwatch_ms = 250\n' +
  actors
    .map(
      ({ chain, treasury }) => `
[[chains]]
network = "${chain.network}"
rpc_url = "${chain.rpcUrl}"
private_key = "${treasury.privateKey}"
min_topup = 0.50
withdrawal_min = 0.000001
`,
    )
    .join('');

const providerFile = (router: string, wallet: DemoWallet, network: string, upstream: string) => `
[router]
url = "${router}"
[router.siwx]
chain_id = "${network}"
private_key = "${wallet.privateKey}"

[[models]]
name = "${MODEL}"
display_name = "Oracle (Delphi)"
provider_name = "Delphi"
[models.pricing]
prompt = 500
completion = 2500
[models.params]
model = "oracle"
api_base = "${upstream}"
api_key = "none"
`;

/** A client that pays when it is asked to, by whichever chain its wallet is on. */
async function payingFetch({ chain, payer }: Actor): Promise<typeof fetch> {
  const client = new x402Client();
  if (chain.network.startsWith('eip155:'))
    client.register(
      chain.network as 'eip155:0',
      new ExactEvmScheme(privateKeyToAccount(payer.privateKey as `0x${string}`)),
    );
  else
    client.register(
      chain.network as 'solana:0',
      new ExactSvmScheme(await createKeyPairSignerFromBytes(bs58.decode(payer.privateKey)), { rpcUrl: chain.rpcUrl }),
    );
  return wrapFetchWithPayment(request, client);
}

interface Signer {
  readonly url: string;
  readonly network: string;
  readonly privateKey: string;
}

/** A sign-in header; with a nonce of the gateway's for what is sensitive. */
async function signIn({ url, network, privateKey }: Signer, sensitive = false): Promise<Record<string, string>> {
  const nonce = sensitive
    ? ((await (await request(`${url}/api/v1/auth/nonce`)).json()) as { nonce: string }).nonce
    : undefined;
  const wallet = await loadWallet({ chainId: network, privateKey });
  const { host } = new URL(url);
  return {
    'SIGN-IN-WITH-X': await signInHeader(wallet, {
      domain: host,
      uri: url,
      nonce,
      now: Date.now(),
      lifetimeMs: 300_000,
    }),
  };
}

async function json<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${response.url}: ${text}`);
  return JSON.parse(text) as T;
}

/** Prints the words of a streamed chat as they come. */
async function printStream(response: Response, paint: Paint): Promise<void> {
  if (!response.ok || !response.body) throw new Error(`${response.status}: ${await response.text()}`);
  process.stdout.write('  ');
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith('data: {')) continue;
      const { choices } = JSON.parse(line.slice(6)) as { choices?: { delta?: { content?: string } }[] };
      process.stdout.write(paint('italic', choices?.[0]?.delta?.content ?? ''));
    }
  }
  process.stdout.write('\n');
}

const usd = (micro: bigint | number) => (Number(micro) / MICRO).toFixed(6);

async function show(url: string, actors: readonly Actor[], provider: DemoWallet, paint: Paint): Promise<void> {
  const print = (text = '') => process.stdout.write(`${text}\n`);
  const step = (text: string) => print(`\n${paint('bold', text)}`);
  const home = actors[0]!;
  const holders = [
    ...actors.flatMap(({ chain, payer, treasury }) => [
      { name: 'wallet', chain, address: payer.address },
      { name: 'treasury', chain, address: treasury.address },
    ]),
    { name: 'provider', chain: home.chain, address: provider.address },
  ];
  const balances = () => Promise.all(holders.map(({ chain, address }) => chain.balanceOf(address)));
  const before = await balances();

  const body = (stream: boolean) =>
    JSON.stringify({
      model: MODEL,
      stream,
      max_tokens: 40,
      messages: [{ role: 'user', content: 'What is a tollgate?' }],
    });
  const chat = (ask: typeof fetch, stream: boolean, headers: Record<string, string> = {}) =>
    ask(`${url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: body(stream),
    });

  for (const actor of actors) {
    const { chain, payer } = actor;
    step(`${chain.title}: a wallet with USDC and no account asks`);
    const refused = await chat(request, true);
    const { error, accepts } = (await refused.json()) as {
      error: { message: string };
      accepts: { network: string; amount: string }[];
    };
    const terms = accepts.find(({ network }) => network === chain.network)!;
    print(
      `  ${paint('yellow', String(refused.status))} ${error.message}; ${usd(Number(terms.amount))} USDC to ${chain.network} will do`,
    );
    const answer = await chat(await payingFetch(actor), true);
    const receipt = decodePaymentResponseHeader(answer.headers.get('payment-response')!);
    print(`  ${paint('green', String(answer.status))} paid in transaction ${paint('dim', receipt.transaction)}`);
    await printStream(answer, paint);
    const wallet: Signer = { url, network: chain.network, privateKey: payer.privateKey };
    const again = await json<{ usage: { cost: number } }>(await chat(request, false, await signIn(wallet)));
    const left = await json<{ balance_usd: string }>(
      await request(`${url}/api/v1/session/balance`, { headers: await signIn(wallet) }),
    );
    print(
      `  ${paint('green', '200')} signed in, once more from the balance: ${again.usage.cost} USD, ${left.balance_usd} USD left`,
    );
  }

  step('The provider withdraws what it earned');
  const { chain } = home;
  const account: Signer = { url, network: chain.network, privateKey: provider.privateKey };
  const earned = await untilEarned(account);
  const asked = await request(`${url}/api/v1/withdrawals`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'demo', ...(await signIn(account, true)) },
    body: JSON.stringify({ network: chain.network, source: 'earnings', amount_micro_usdc: earned }),
  });
  let { data: withdrawal } = await json<{ data: Withdrawal }>(asked);
  while (withdrawal.status !== 'paid') {
    if (!['pending', 'processing'].includes(withdrawal.status))
      throw new Error(`The withdrawal is ${withdrawal.status}: ${withdrawal.reason}`);
    await chain.finalize();
    await pause(200);
    ({ data: withdrawal } = await json<{ data: Withdrawal }>(
      await request(`${url}/api/v1/withdrawals/${withdrawal.id}`, { headers: await signIn(account) }),
    ));
  }
  print(`  ${paint('green', usd(earned))} USDC to ${provider.address}`);
  print(`  in transaction ${paint('dim', withdrawal.transaction!)}`);

  step('On the chains');
  const after = await balances();
  const rows = holders.map(({ name, chain: { title }, address }, index) => [
    name,
    title,
    `${address.slice(0, 6)}…${address.slice(-4)}`,
    usd(before[index]!),
    usd(after[index]!),
    `${after[index]! < before[index]! ? '' : '+'}${usd(after[index]! - before[index]!)}`,
  ]);
  for (const line of table(['', 'chain', 'address', 'before', 'after', 'change'], rows, paint)) print(`  ${line}`);
  for (const { chain: each } of actors) for (let block = 0; block < 12; block += 1) await each.finalize();
}

interface Withdrawal {
  readonly id: string;
  readonly status: string;
  readonly reason: string | null;
  readonly transaction: string | null;
}

/** A treasury on Solana gets its token account with the first start, which takes its finality. */
async function untilChainsAnswer(url: string, chains: readonly DemoChain[]): Promise<void> {
  for (let look = 0; ; look += 1) {
    const { data } = await json<{ data: { answers: boolean }[] }>(await request(`${url}/api/v1/payments/chains`));
    if (data.every(({ answers }) => answers)) return;
    if (look % 4 === 2) for (const chain of chains) await chain.finalize();
    await pause(100);
  }
}

/** What a provider has earned, once the last call is settled. */
async function untilEarned(account: Signer): Promise<number> {
  for (;;) {
    const { available_micro_usdc: available } = await json<{ available_micro_usdc: number }>(
      await request(`${account.url}/api/v1/provider/earnings`, { headers: await signIn(account) }),
    );
    if (available > 0) return available;
    await pause(100);
  }
}

/** Columns as wide as their widest; figures stand right. */
function table(head: readonly string[], rows: readonly (readonly string[])[], paint: Paint): string[] {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) =>
    row.map((cell, column) => (column > 2 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!))).join('  ');
  return [paint('dim', line(head)), ...rows.map(line)];
}

process.on('SIGINT', () => stop.abort()).on('SIGTERM', () => stop.abort());
const paint: Paint = (style, text) => styleText(style, text, { stream: process.stdout });
const dir = await mkdtemp(join(tmpdir(), 'tollgate-paid-call-'));
const ends: (() => Promise<void>)[] = [() => rm(dir, { recursive: true, force: true })];
try {
  process.stdout.write(
    `${paint('dim', 'Two chains with USDC start, a gateway that is paid on both, and a provider that dials in …')}\n`,
  );
  const chains = [await startEvm(), await startSolana()];
  ends.push(...chains.map((chain) => () => chain.stop()));
  const actors: Actor[] = [];
  for (const chain of chains) {
    const [treasury, payer] = [await chain.wallet(), await chain.wallet()];
    await chain.fuel(treasury.address);
    await chain.mint(payer.address, PURSE);
    await chain.finalize();
    actors.push({ chain, treasury, payer });
  }
  const model = await startModel();
  ends.push(() => model.close());

  const data = join(dir, 'data');
  const file = join(dir, 'tollgate.toml');
  await writeFile(file, gatewayFile(actors), { mode: 0o600 });
  const gateway = await startProgram(
    ['start', '--config', file, '--data', data, '--host', '127.0.0.1', '--port', String(await freePort())],
    'Ctrl-C stops it',
    stop.signal,
  );
  ends.push(() => gateway.close());
  const { base_url: url } = JSON.parse(await readFile(join(data, 'dev.json'), 'utf8')) as { base_url: string };

  await untilChainsAnswer(url, chains);

  const provider = await chains[0]!.wallet();
  const providerConfig = join(dir, 'provider.toml');
  await writeFile(providerConfig, providerFile(url, provider, chains[0]!.network, model.url), { mode: 0o600 });
  const proxy = await startProgram(['provide', '--config', providerConfig], 'ready: calls can come', stop.signal);
  ends.push(() => proxy.close());
  await Promise.race([show(url, actors, provider, paint), once(stop.signal, 'abort')]);
  if (!stop.signal.aborted) {
    process.stdout.write(
      `\n${paint('bold', 'The books, against the treasuries')}  ${paint('dim', 'tollgate audit --chain')}\n`,
    );
    await runProgram(['audit', '--chain', '--config', file, '--data', data]);
  }
} catch (error) {
  if (!stop.signal.aborted) {
    process.exitCode = 1;
    console.error(error);
  }
} finally {
  for (const end of ends.toReversed()) await end();
}
process.exit();
