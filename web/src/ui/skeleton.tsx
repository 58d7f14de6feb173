import type { ReactNode } from 'react';

/** A placeholder for a line that is loading. Give it the size of the content. */
export function Skeleton({ className = 'h-4 w-full' }: { readonly className?: string }): ReactNode {
  return <span aria-hidden className={`shimmer block rounded ${className}`} />;
}

/** A placeholder for a page that is loading. */
export function PageSkeleton(): ReactNode {
  return (
    <div role="status">
      <span className="sr-only">Loading</span>
      <Skeleton className="h-9 w-64" />
      <Skeleton className="mt-4 h-5 w-full max-w-lg" />
      <Skeleton className="mt-8 h-72 w-full rounded-xl" />
    </div>
  );
}
