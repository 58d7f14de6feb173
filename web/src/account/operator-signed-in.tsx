import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { LogOut } from 'lucide-react';
import type { ReactNode } from 'react';
import { explain } from '../api/api-error.ts';
import { askOperator, NO_OPERATOR, type OperatorSession, signOutOperator } from '../api/operator.ts';
import { Link } from '../app/link.tsx';

/** The name and rights of the operator who is signed in, and the sign-out. Without a session, `children`. */
export default function OperatorSignedIn({ children }: { readonly children: ReactNode }): ReactNode {
  const { data: session } = useQuery({ queryKey: ['operator'], queryFn: askOperator, refetchInterval: 60_000 });
  const queries = useQueryClient();
  const leave = useMutation({
    mutationFn: signOutOperator,
    onSuccess: () => {
      // The session is set to signed out first, so that the pages disappear. A query that is removed while it is shown
      // would be sent again.
      queries.setQueryData<OperatorSession>(['operator'], NO_OPERATOR);
      queries.removeQueries({ queryKey: ['admin'] });
    },
  });
  if (!session?.administrator) return children;
  const { id, label, roles } = session.administrator;
  const name = id === 'root' ? 'Admin key' : (label ?? id.slice(id.lastIndexOf(':') + 1));
  const rights = roles === null ? 'every right' : roles.join(', ');
  return (
    <>
      <Link
        href="/admin"
        title={`Signed in as administrator: ${name}, ${rights}`}
        className="max-w-14 truncate text-sm leading-tight font-medium hover:underline min-[360px]:max-w-20 sm:max-w-56"
      >
        {name}
        <span className="block truncate text-xs font-normal text-soft">{rights}</span>
      </Link>
      <button
        type="button"
        aria-label="Sign out"
        title="Sign out"
        disabled={leave.isPending}
        onClick={() => leave.mutate()}
        className="grid size-9 place-items-center rounded-md border border-line hover:border-edge"
      >
        <LogOut size={16} aria-hidden />
      </button>
      {leave.error !== null && (
        <p role="alert" className="absolute top-14 right-4 rounded-b-lg bg-bad-wash px-4 py-2 text-sm">
          You are still signed in. {explain(leave.error).sentence}
        </p>
      )}
    </>
  );
}
