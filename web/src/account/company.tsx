import type { ReactNode } from 'react';
import { BOOT } from '../app/boot.ts';
import { buttonStyle } from '../ui/button-style.ts';

/** The name of the company whose people sign in at its own provider. null without a provider. */
export const COMPANY = BOOT.people;

/** Begins a sign-in at the company's provider, which sends the browser back to the path `after`. */
export function CompanyLink({ after }: { readonly after: string }): ReactNode {
  return (
    <a href={`/api/v1/auth/people/start?to=${encodeURIComponent(after)}`} className={buttonStyle('primary')}>
      Sign in with {COMPANY}
    </a>
  );
}

/** Texts of failed sign-ins, by the code in the address of the page. */
export const COMPANY_FAILURES: Readonly<Record<string, { readonly title: string; readonly text: string }>> = {
  away: {
    title: 'The provider of your company does not answer',
    text: 'Try again in a minute. If that does not help, the operator of this gateway finds the reason in its log.',
  },
  refused: {
    title: 'The provider of your company did not sign you in',
    text: 'Its answer said no, or was not the one to your sign-in. Try again.',
  },
  over: {
    title: 'This sign-in is over',
    text: 'It took longer than ten minutes, was used before, or began in another browser. Begin again.',
  },
  no_access: {
    title: 'You have no access here',
    text: 'Your company knows you, but none of your groups has access to this gateway. Ask its operator.',
  },
  too_many: { title: 'Too many sign-ins from your network', text: 'Wait a minute, and try again.' },
};
