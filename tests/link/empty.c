/*
 * An empty program: what matters is whether it links.
 */
int main(void)
{
	return 0;
}
