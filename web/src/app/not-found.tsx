import type { ReactNode } from 'react';
import { Empty } from '../ui/empty.tsx';
import { Link } from './link.tsx';
import { useTitle } from './title.ts';

/** Shown if no page or service has this address. */
export function NotFound({
  title = 'There is no such page.',
  text = 'The address may be mistyped.',
}: {
  readonly title?: string;
  readonly text?: string;
}): ReactNode {
  useTitle('Not found');
  return (
    <Empty
      title={title}
      heading="h1"
      text={text}
      action={
        <Link href="/marketplace" className="link">
          Look in the marketplace
        </Link>
      }
    />
  );
}
