import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import type { Wallet } from '#proxy/wallet';
import { OWN_NAME, shellWord } from './command-line.ts';
import { facts, painter, CliError, say } from './terminal.ts';

/* Commands of wallets: `keygen` makes one, `siwx` signs in with one. */

interface KeygenFlags {
  readonly chain: 'solana' | 'evm';
  readonly out: string;
}

const keygenHelp = (program: string) => `
The file is made readable for its owner alone and holds the only copy of the key: whoever has it is the wallet, with
its balance, its earnings and its registrations as a provider. An existing file is never overwritten.

  solana   a JSON array of 64 numbers, as solana-keygen writes it
  evm      the private key in hex with 0x

Examples:
  ${program} keygen --chain solana --out provider.json
  ${program} keygen --chain evm --out wallet.hex
  ${program} siwx --keypair wallet.hex --chain-id eip155:8453 --domain gateway.example`;

export function keygenCommand(program: string): Command {
  return new Command('keygen')
    .summary('make a wallet to sign in with')
    .usage('--chain <chain> --out <file>')
    .description('Make a wallet and keep it in a file.')
    .addOption(new Option('--chain <chain>', 'what kind of wallet').choices(['solana', 'evm']).makeOptionMandatory())
    .addOption(new Option('-o, --out <file>', 'file to write; must not exist yet').makeOptionMandatory())
    .addHelpText('after', keygenHelp(program))
    .action(async ({ chain, out }: KeygenFlags) => {
      // Loaded here, because other commands do not need it.
      const { createWallet, writeKeypairFile } = await import('#proxy/wallet');
      const { wallet, fileText } = await createWallet(chain);
      await writeKeypairFile(out, fileText);
      process.stdout.write(`${describe(wallet, out)}\n`);
    });
}

function describe(wallet: Wallet, out: string): string {
  const paint = painter();
  const text = facts(
    [
      ['address', wallet.address],
      ['account', wallet.accountId],
      ['provider', wallet.providerId],
    ],
    paint,
    '  ',
  );
  return `${paint('green', '✓')} ${out} holds a new wallet. Only you can read it, and nobody can restore it: keep a copy in a safe place.

${text}

To call with it instead of an API key:
  curl -H "SIGN-IN-WITH-X: $(${OWN_NAME} siwx --keypair ${shellWord(out)} --chain-id ${wallet.chainId} --domain <host>)" \\
    https://<host>/api/v1/session/balance

To provide services with it, in the file of ${OWN_NAME} provide:
  [router]
  url = "https://<host>"

  [router.siwx]
  chain_id = "${wallet.chainId}"
  keypair_file = ${JSON.stringify(resolve(out))}`;
}

interface SiwxFlags {
  readonly keypair: string;
  readonly chainId: string;
  readonly domain?: string;
  readonly uri?: string;
  readonly nonce?: string;
  readonly lifetime: string;
  readonly statement?: string;
  readonly data?: string;
}

const SECOND_MS = 1000;
const UNIT_MS = { s: SECOND_MS, m: 60 * SECOND_MS, h: 3600 * SECOND_MS };
const ANSWER_MS = 5 * SECOND_MS;
/** No gateway accepts a message with a longer lifetime. */
const LIFETIME_MS_MAX = 24 * UNIT_MS.h;

const siwxHelp = (program: string) => `
Standard output is the header's value and nothing else. Whoever has it can act as the wallet, at gateways of this
domain and until it expires: do not share it. Keys, withdrawals and a change of the payout address take a header of
their own with a nonce that the gateway issued, GET /api/v1/auth/nonce, and only once.

Without --domain the host of --uri is taken; without both, the gateway that runs on the data directory.

Examples:
  curl -H "SIGN-IN-WITH-X: $(${program} siwx --keypair key.json --chain-id solana:mainnet --domain gateway.example)" \\
    https://gateway.example/api/v1/session/balance
  ${program} siwx --keypair wallet.hex --chain-id eip155:8453 --domain 127.0.0.1:8402 --uri http://127.0.0.1:8402
  ${program} siwx --keypair key.json --chain-id solana:mainnet --domain gateway.example \\
    --nonce "$(curl -s https://gateway.example/api/v1/auth/nonce | jq -r .nonce)" --lifetime 5m`;

export function siwxCommand(program: string): Command {
  return new Command('siwx')
    .summary('sign in: a header for curl, made by a wallet')
    .usage('--keypair <file> --chain-id <chain> [--domain <host>] [options]')
    .description('Print the value of a SIGN-IN-WITH-X header.')
    .addOption(
      new Option(
        '-k, --keypair <file>',
        `file that holds the wallet's key; see ${program} keygen`,
      ).makeOptionMandatory(),
    )
    .addOption(
      new Option(
        '--chain-id <chain>',
        'its chain as CAIP-2, such as eip155:8453; or solana:mainnet, …',
      ).makeOptionMandatory(),
    )
    .option('--domain <host>', 'host of the gateway, with its port where that is not the default one')
    .option('--uri <address>', 'address to sign in at; by default https://<domain>')
    .option('--nonce <nonce>', 'nonce that the gateway issued')
    .option('--lifetime <duration>', 'how long the header is good, such as 90s, 15m or 1h', '15m')
    .option('--statement <text>', 'one line that the wallet states')
    .option('--data <directory>', 'data directory (TOLLGATE_DATA) to find the running gateway by')
    .addHelpText('after', siwxHelp(program))
    .action(async (flags: SiwxFlags) => {
      const lifetimeMs = parseLifetime(flags.lifetime);
      const { domain, uri } = await findDomain(flags);
      // Loaded here, because other commands do not need it.
      const { loadWallet, signInHeader } = await import('#proxy/wallet');
      const wallet = await loadWallet({ chainId: flags.chainId, keypairFile: flags.keypair }, OWN_NAME);
      const { nonce, statement } = flags;
      const now = Date.now();
      const value = await signInHeader(wallet, { domain, uri, statement, nonce, now, lifetimeMs });
      process.stdout.write(`${value}\n`);
      const until = new Date(now + lifetimeMs).toISOString().slice(0, 19);
      say(`${wallet.accountId} at ${domain}, until ${until}Z. Send it as SIGN-IN-WITH-X.`);
    });
}

function parseLifetime(text: string): number {
  const [, number, unit] = /^([0-9]{1,6})([smh])$/.exec(text) ?? [];
  const lifetimeMs = Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (!(lifetimeMs > 0)) throw new CliError(`--lifetime is a duration, such as 90s, 15m or 1h, not ${text}`);
  if (lifetimeMs > LIFETIME_MS_MAX)
    throw new CliError(
      `--lifetime ${text} is longer than any gateway accepts. Usual is an hour at most, never is more than 24h.`,
    );
  return lifetimeMs;
}

/** The domain in the form of browsers, and the address to sign in at. */
async function findDomain({
  domain,
  uri,
  data,
}: SiwxFlags): Promise<{ readonly domain: string; readonly uri: string }> {
  if (domain !== undefined) {
    // A whole address is accepted too. Its host is used.
    const url = URL.parse(/^https?:\/\//i.test(domain) ? domain : `https://${domain}`);
    if (!url || /\s/.test(domain))
      throw new CliError(`--domain is the host of a gateway, such as gateway.example or 127.0.0.1:8402, not ${domain}`);
    return { domain: url.host, uri: uri ?? url.origin };
  }
  if (uri !== undefined) {
    const url = URL.parse(uri);
    if (!url?.host)
      throw new CliError(`--uri is the address of a gateway, such as https://gateway.example, not ${uri}`);
    return { domain: url.host, uri };
  }
  const [{ loadConfig }, { findGateway }] = await Promise.all([import('#config'), import('./discovery.ts')]);
  const { dataDir } = loadConfig({
    file: null,
    env: process.env,
    mode: 'production',
    overrides: { 'server.data_dir': data },
  });
  const { gateway } = findGateway(dataDir);
  if (!gateway) {
    throw new CliError(
      `No gateway runs on the data directory ${dataDir}: say which one the header is for.\nGive its host: --domain gateway.example`,
    );
  }
  return askGateway(gateway.base_url);
}

/**
 * The domain for which a running gateway accepts sign-ins. It is the gateway's own address if the gateway accepts that.
 */
async function askGateway(base: string): Promise<{ readonly domain: string; readonly uri: string }> {
  let response: Response;
  try {
    response = await fetch(`${base}/api/v1/auth/nonce`, { signal: AbortSignal.timeout(ANSWER_MS), redirect: 'error' });
  } catch (error) {
    throw new CliError(
      `The gateway at ${base} does not answer.\nStart it, or say which one the header is for: --domain gateway.example`,
      {
        cause: error,
      },
    );
  }
  if (!response.ok) {
    await response.body?.cancel();
    throw new CliError(
      `Wallets cannot sign in at the gateway at ${base}: it has no domain.\nIts operator names one in sign_in.domains (TOLLGATE_SIGN_IN_DOMAINS).`,
    );
  }
  const { domains, message } = (await response.json()) as {
    readonly domains: readonly string[];
    readonly message: { readonly domain: string; readonly uri: string };
  };
  const { host } = new URL(base);
  return domains.includes(host) ? { domain: host, uri: base } : { domain: message.domain, uri: message.uri };
}
