import { createContext, useCallback, useContext, useRef, useState, type SyntheticEvent, type ReactNode } from 'react';
import { COMPANY, CompanyLink } from '../../account/company.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';

/**
 * Asks for the admin key. `act` describes what it is for. Resolves with null if the user declines, and with '' if none
 * is needed.
 */
type AskKey = (act: string) => Promise<string | null>;

const TargetContext = createContext<AskKey>(() => Promise.resolve(null));
export const useAdminKey = (): AskKey => useContext(TargetContext);

/** Provides `useAdminKey` to the pages in it. The key is asked for each time and never stored. */
export function AdminKeyProvider({
  needsKey,
  children,
}: {
  /** False for a person of the company who has just signed in: the session is enough. */
  readonly needsKey: boolean;
  readonly children: ReactNode;
}): ReactNode {
  const [act, setAct] = useState<string | null>(null);
  const [key, setKey] = useState('');
  const answer = useRef<(key: string | null) => void>(() => {});
  const ask: AskKey = useCallback(
    (asked) => {
      if (!needsKey) return Promise.resolve('');
      setAct(asked);
      setKey('');
      return new Promise((resolve) => (answer.current = resolve));
    },
    [needsKey],
  );
  const done = (given: string | null) => {
    answer.current(given);
    setAct(null);
    setKey('');
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    done(key.trim());
  };
  return (
    <TargetContext value={ask}>
      {children}
      <Dialog title="Confirm with the admin key" open={act !== null} onClose={() => done(null)}>
        <form onSubmit={submit} className="grid gap-4">
          <p className="font-medium">{act}</p>
          <Field
            label="Admin key"
            hint="It is sent with this one request and is not kept."
            type="password"
            name="admin-key"
            autoComplete="off"
            spellCheck={false}
            required
            value={key}
            onChange={({ target }) => setKey(target.value)}
          />
          <Button type="submit" tone="primary" className="justify-self-end">
            Confirm
          </Button>
        </form>
        {COMPANY !== null && (
          <div className="mt-5 grid justify-items-start gap-3 border-t border-line pt-4">
            <p className="text-soft">Or sign in again, which is a proof for 15 minutes, and begin this again.</p>
            <CompanyLink after={location.pathname + location.search} />
          </div>
        )}
      </Dialog>
    </TargetContext>
  );
}
