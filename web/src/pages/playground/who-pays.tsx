import { useState, type ReactNode } from 'react';
import { actsFor, chosenPayer, OWN } from '../../api/acting.ts';
import { mayCall, type Organisation, organisationName, useOwnOrganisations } from '../../api/organisation.ts';
import type { Session } from '../../api/session.ts';
import { Choice } from '../../ui/choice.tsx';

interface Payers {
  /** Organisations that may pay. */
  readonly payers: readonly Organisation[];
  /** The payer now: an account of `payers`, or OWN. */
  readonly chosen: string;
  readonly choose: (payer: string) => void;
  /** Until the organisations are known. */
  readonly waiting: boolean;
}

/** Finds the payers of calls of the playground. Somebody of a company usually has no money of their own. */
export function usePayers(session: Session | null): Payers {
  const asks = session?.rights === 'full';
  const { data: organisations = [], isLoading: waiting } = useOwnOrganisations(asks);
  const [wanted, choose] = useState(chosenPayer);
  const payers = asks ? organisations.filter(({ role }) => mayCall(role)) : [];
  const usual = session?.signed_in_by === 'person' ? payers[0]?.account : null;
  const chosen = [wanted, actsFor(), usual].find((one) => one === OWN || payers.some(({ account }) => account === one));
  return { payers, chosen: chosen ?? OWN, choose, waiting };
}

export function WhoPays({ of: { payers, chosen, choose } }: { readonly of: Payers }): ReactNode {
  if (payers.length === 0) return null;
  return (
    <div className="mb-6 flex flex-wrap items-center gap-x-3 gap-y-1.5">
      <span className="text-sm text-soft">Who pays</span>
      <Choice
        label="Who pays"
        options={[
          { value: OWN, text: 'My own account' },
          ...payers.map((one) => ({ value: one.account, text: organisationName(one) })),
        ]}
        chosen={chosen}
        onChoose={choose}
      />
    </div>
  );
}
