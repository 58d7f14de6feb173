import type { ReactNode } from 'react';
import { useOwnRole } from '../../../api/organisation.ts';
import { Empty } from '../../../ui/empty.tsx';
import { Frame } from '../frame.tsx';
import { Limits } from './limits.tsx';
import { Members } from './members.tsx';
import { Organisations } from './organisations.tsx';

export default function OrganisationPage(): ReactNode {
  return (
    <Frame title="Organisation" lead="Who acts for the account, and what they may spend.">
      {({ rights }) =>
        rights === 'full' ? (
          <Parts />
        ) : (
          <Empty
            heading="h2"
            title="This key is for calls"
            text="A key with limits of its own does not see the account’s members and budgets. Sign in with a wallet, or with a key without limits."
          />
        )
      }
    </Frame>
  );
}

function Parts(): ReactNode {
  const role = useOwnRole();
  return (
    <div className="grid gap-6">
      <Organisations />
      <Limits role={role} />
      <Members role={role} />
    </div>
  );
}
