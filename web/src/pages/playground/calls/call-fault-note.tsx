import type { ReactNode } from 'react';
import { Button } from '../../../ui/button.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { NextStep } from '../account-state.tsx';
import { type CallFault, errorOfFault } from './answer.ts';

/** Says why a call failed, what to do next, and that the call cost nothing if so. */
export function CallFaultNote({
  fault,
  onAgain,
}: {
  readonly fault: CallFault;
  readonly onAgain?: (() => void) | undefined;
}): ReactNode {
  const again =
    onAgain === undefined ? undefined : (
      <Button size="small" onClick={onAgain}>
        Try again
      </Button>
    );
  // Paying in doesn't help if a budget refused the call.
  const isOfBudget = typeof fault.budget === 'string';
  const title = isOfBudget ? 'This call would cost more than may be spent.' : TITLES[fault.status];
  return (
    <ErrorNote
      {...(title === undefined ? {} : { title })}
      error={errorOfFault(fault)}
      action={isOfBudget ? again : <NextStep status={fault.status} again={again} />}
    />
  );
}

const TITLES: Readonly<Record<number, string>> = {
  401: 'You are not signed in any more.',
  402: 'The balance is too low for this call.',
  424: 'This account has no money yet.',
  429: 'Too many calls in a short time.',
};
