import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import type { Wallet } from '#provide/wallet';
import { OWN_NAME, shellWord } from './own-name.ts';
import { facts, painter } from './terminal.ts';

interface KeygenFlags {
  readonly chain: 'solana' | 'evm';
  readonly out: string;
}

const help = (program: string) => `
The file is made readable for its owner alone and holds the only copy of the key: whoever has it is the wallet, with
its balance, its earnings and its registrations as a provider. An existing file is never overwritten.

  solana   a JSON array of 64 numbers, as solana-keygen writes it
  evm      the private key in hex with 0x

Examples:
  ${program} keygen --chain solana --out provider.json
  ${program} keygen --chain evm --out wallet.hex
  ${program} siwx --keypair wallet.hex --chain-id eip155:8453 --domain gateway.example`;

/** `tollgate keygen`: creates a wallet in a new file. `program` is the name that its help shows. */
export function keygenCommand(program: string): Command {
  return new Command('keygen')
    .summary('make a wallet to sign in with')
    .usage('--chain <chain> --out <file>')
    .description('Make a wallet and keep it in a file.')
    .addOption(new Option('--chain <chain>', 'what kind of wallet').choices(['solana', 'evm']).makeOptionMandatory())
    .addOption(new Option('-o, --out <file>', 'file to write; must not exist yet').makeOptionMandatory())
    .addHelpText('after', help(program))
    .action(async ({ chain, out }: KeygenFlags) => {
      // Loaded here, because other commands do not need it.
      const { createWallet, writeKeypairFile } = await import('#provide/wallet');
      const { wallet, fileText } = await createWallet(chain);
      await writeKeypairFile(out, fileText);
      process.stdout.write(`${describe(wallet, out)}\n`);
    });
}

function describe(wallet: Wallet, out: string): string {
  const paint = painter();
  const shown = facts(
    [
      ['address', wallet.address],
      ['account', wallet.accountId],
      ['provider', wallet.providerId],
    ],
    paint,
    '  ',
  );
  return `${paint('green', '✓')} ${out} holds a new wallet. Only you can read it, and nobody can restore it: keep a copy in a safe place.

${shown}

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
