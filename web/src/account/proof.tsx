import { createContext, useCallback, useContext, useRef, useState, type SyntheticEvent, type ReactNode } from 'react';
import { ApiError, explain } from '../api/api-error.ts';
import { api, call } from '../api/client.ts';
import type { Session } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { ErrorNote } from '../ui/error-note.tsx';
import { Field } from '../ui/field.tsx';
import { signSignIn } from '../wallet/sign-in-message.ts';
import { useWallets } from '../wallet/use-wallets.ts';
import { type FoundWallet, WalletError } from '../wallet/wallet.ts';
import { WalletList } from '../wallet/wallet-list.tsx';
import { CompanyLink } from './company.tsx';
import { AccountName, shortAccount } from './account-name.tsx';

/** Headers that prove who the user is. Valid for one request. */
type Proof = Readonly<Record<string, string>>;

/**
 * Asks the user for a proof, for acts that need more than the session's cookie. `act` describes the act in one line,
 * which a wallet shows to its owner. Resolves with null if the user declines.
 */
type AskProof = (act: string) => Promise<Proof | null>;

const ProofContext = createContext<AskProof>(() => Promise.resolve(null));
export const useProof = (): AskProof => useContext(ProofContext);

/** Provides `useProof` to the pages in it, and shows its dialog. */
export function ProofProvider({
  session,
  children,
}: {
  readonly session: Session;
  readonly children: ReactNode;
}): ReactNode {
  const [act, setAct] = useState<string | null>(null);
  const answer = useRef<(proof: Proof | null) => void>(() => {});
  const ask: AskProof = useCallback(
    (asked) => {
      if (session.step_up === null) return Promise.resolve({});
      setAct(asked);
      return new Promise((resolve) => (answer.current = resolve));
    },
    [session.step_up],
  );
  const done = (proof: Proof | null) => {
    answer.current(proof);
    setAct(null);
  };
  return (
    <ProofContext value={ask}>
      {children}
      <Dialog title="Confirm that it is you" open={act !== null} onClose={() => done(null)}>
        <p className="mb-1 font-medium">{act}</p>
        {session.step_up === 'wallet' ? (
          <ByWallet session={session} act={act ?? ''} onProof={done} />
        ) : session.step_up === 'person' ? (
          <div className="grid justify-items-start gap-4">
            <p className="text-soft">
              This needs a sign-in of the last 15 minutes. You come back to this page, and then begin this again.
            </p>
            <CompanyLink after={location.pathname + location.search} />
          </div>
        ) : (
          <ByKey session={session} onProof={done} />
        )}
      </Dialog>
    </ProofContext>
  );
}

interface WayProps {
  readonly session: Session;
  readonly onProof: (proof: Proof) => void;
}

const isSame = (one: string, other: string) =>
  one === other || (one.startsWith('0x') && one.toLowerCase() === other.toLowerCase());

function ByWallet({ session, act, onProof }: WayProps & { readonly act: string }): ReactNode {
  const account = session.wallet ?? session.account;
  const address = account.split(':').at(-1)!;
  const wallets = useWallets(account.startsWith('solana:') ? 'solana' : 'eip155');
  const [busy, setBusy] = useState<string | null>(null);
  const [failed, setFailed] = useState<unknown>(null);
  const sign = async (found: FoundWallet) => {
    setBusy(found.id);
    setFailed(null);
    try {
      const wallet = await found.connect();
      if (!isSame(wallet.address, address))
        throw new WalletError(
          `The wallet is on ${shortAccount(wallet.address)}. Choose ${shortAccount(address)} in it, then try again.`,
        );
      onProof({ 'sign-in-with-x': await signSignIn(wallet, act) });
    } catch (error) {
      setFailed(error);
    } finally {
      setBusy(null);
    }
  };
  return (
    <div className="grid gap-4">
      <p className="text-soft">
        Sign once more with <AccountName account={account} />. The signature is good for this one request. So nobody can
        do this who only has your browser’s session.
      </p>
      {failed !== null && <ErrorNote error={failed} />}
      <WalletList wallets={wallets} busy={busy} onChoose={(wallet) => void sign(wallet)} />
    </div>
  );
}

function ByKey({ session, onProof }: WayProps): ReactNode {
  const [key, setKey] = useState('');
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: SyntheticEvent) => {
    event.preventDefault();
    const text = key.trim();
    try {
      if (session.key !== null && (await isAnother(text, session.key)))
        return setError('This is not the key that you signed in with.');
    } catch (failure) {
      return setError(explain(failure).sentence);
    }
    onProof({ authorization: `Bearer ${text}` });
  };
  return (
    <form onSubmit={(event) => void submit(event)} className="grid gap-4">
      <p className="text-soft">
        Enter the API key that you signed in with. It is sent with this one request and is not kept.
      </p>
      <Field
        label="API key"
        type="password"
        name="api-key"
        autoComplete="off"
        spellCheck={false}
        placeholder="svc-sk-…"
        required
        value={key}
        error={error}
        onChange={({ target }) => {
          setKey(target.value);
          setError(null);
        }}
      />
      <Button type="submit" tone="primary" className="justify-self-start">
        Confirm
      </Button>
    </form>
  );
}

/**
 * Whether a text is of no key that may act for the session's. Browsers can hash only over https and on localhost, and a
 * key that was rotated has another hash than its text: then the gateway is asked.
 */
async function isAnother(text: string, hash: string): Promise<boolean> {
  // The type claims that it always exists.
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  const digest = await subtle?.digest('SHA-256', new TextEncoder().encode(text));
  if (digest !== undefined && new Uint8Array(digest).toHex() === hash) return false;
  try {
    const headers = { authorization: `Bearer ${text}` };
    await call(api.GET('/api/v1/keys/{hash}', { params: { path: { hash } }, headers }));
    return false;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return true;
    throw error;
  }
}
