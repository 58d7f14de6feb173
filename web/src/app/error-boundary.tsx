import { Component, type ReactNode } from 'react';
import { Button } from '../ui/button.tsx';
import { ErrorNote } from '../ui/error-note.tsx';

interface Props {
  readonly children: ReactNode;
}

/** Shows the error instead of a page that failed, or whose files were removed by a new version. */
export class ErrorBoundary extends Component<Props, { readonly error: unknown }> {
  override state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    const gone = error instanceof TypeError && /import|module/i.test(error.message);
    return (
      <ErrorNote
        title={gone ? 'There is a newer version of this page.' : 'This page failed.'}
        error={gone ? 'Load it again to get the new version.' : error}
        action={<Button onClick={() => location.reload()}>Load again</Button>}
      />
    );
  }
}
