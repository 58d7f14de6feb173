import type { ReactNode } from 'react';
import { Button } from '../../../ui/button.tsx';

/** A button below a list that reads its next page. Nothing is shown at the end of the list. */
export function OlderButton({
  list,
  text,
}: {
  readonly list: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => Promise<unknown>;
  };
  readonly text: string;
}): ReactNode {
  if (!list.hasNextPage) return null;
  return (
    <div className="flex justify-center border-t border-line p-3">
      <Button size="small" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        {text}
      </Button>
    </div>
  );
}
