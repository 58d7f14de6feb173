import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { ErrorNote } from './error-note.tsx';
import { PageSkeleton } from './skeleton.tsx';

/** Shows a query's data, a placeholder while it loads, or its error with a button to try again. */
export function QueryView<T>({
  query,
  loading = <PageSkeleton />,
  children,
}: {
  readonly query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>;
  readonly loading?: ReactNode;
  readonly children: (data: T) => ReactNode;
}): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.error)
    return <ErrorNote error={query.error} action={<Button onClick={() => void query.refetch()}>Try again</Button>} />;
  return loading;
}
