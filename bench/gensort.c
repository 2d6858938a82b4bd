/*
 * gensort.c
 *		Generates and validates records of the sort benchmark's shape.
 *
 * A record is 100 bytes: a 10-byte key and a 90-byte value.  Record number i
 * depends on the seed and on i alone, so any range can be made by itself and
 * in parallel.  The random words are a counter passed through a 64-bit mixer.
 *
 *	ASCII	key: 10 characters, each one of the 95 printable ones.
 *			value: two spaces, the record number in 20 digits, two spaces,
 *			65 letters 'a'-'p', a newline.
 *	binary	key: 10 random bytes.
 *			value: the record number in 8 bytes, big-endian, 82 random bytes.
 *
 * Output: the bare records, or PostgreSQL's COPY stream of two columns (key,
 * value), binary or text; a text stream of binary records has bytea columns.
 *
 * The validator reads bare records or a binary COPY stream, checks that the
 * keys ascend by memcmp, counts neighbours with equal keys, and prints a
 * checksum, the sum of one hash a record, which does not depend on the order,
 * and a digest of the keys in their order.
 *
 * Memory: one buffer.  Exit status: 0, 1 when records are out of order, 2 on
 * wrong use, a damaged input or an I/O error.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_LEN		10
#define VALUE_LEN	90
#define RECORD_LEN	(KEY_LEN + VALUE_LEN)
#define BUFFER_LEN	(1 << 18)
#define TEXT_MAX	(2 * RECORD_LEN + 16)	/* a record in any output format */

/* The first 64 fractional bits of the roots of 2, 3 and 7, made odd. */
#define STEP		UINT64_C(0x6A09E667F3BCC909)
#define MUL1		UINT64_C(0xBB67AE8584CAA73B)
#define MUL2		UINT64_C(0xA54FF53A5F1D36F1)

typedef enum {FORMAT_RAW, FORMAT_COPY, FORMAT_TEXT} Format;

typedef struct
{
	bool		ascii;
	bool		checksum;		/* print the checksum of what is generated */
	Format		format;
	uint64_t	seed;
	uint64_t	start;			/* first record number */
	uint64_t	count;
	uint64_t	distinct;		/* number of different keys; 0: no limit */
} Options;

typedef struct
{
	int			fd;
	const char *name;
	size_t		used;			/* bytes in the buffer */
	size_t		next;			/* input only: first byte not yet taken */
	unsigned char buffer[BUFFER_LEN];
} Stream;

/* A binary COPY stream's header; a row's column count and the fields' lengths. */
static const unsigned char copy_header[19] = "PGCOPY\n\377\r\n";
static const unsigned char key_head[6] = {0, 2, 0, 0, 0, KEY_LEN};
static const unsigned char value_head[4] = {0, 0, 0, VALUE_LEN};

static _Noreturn void __attribute__((format(printf, 1, 2)))
die(const char *format,...)
{
	va_list		args;

	fprintf(stderr, "gensort: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static uint64_t
mix(uint64_t x)
{
	x ^= x >> 32;
	x *= MUL1;
	x ^= x >> 29;
	x *= MUL2;
	x ^= x >> 32;
	return x;
}

/* Little-endian on every machine, so that the same seed gives the same file. */
static uint64_t
load64(const unsigned char *p)
{
	uint64_t	x = 0;

	for (int i = 7; i >= 0; i--)
		x = x << 8 | p[i];
	return x;
}

static void
store64(unsigned char *p, uint64_t x)
{
	for (int i = 0; i < 8; i++, x >>= 8)
		p[i] = (unsigned char) x;
}

static uint64_t
hash_record(const unsigned char *record)
{
	uint64_t	h = STEP;
	int			i;

	for (i = 0; i + 8 <= RECORD_LEN; i += 8)
	{
		h = (h ^ load64(record + i)) * MUL1;
		h ^= h >> 31;
	}
	for (; i < RECORD_LEN; i++)
		h = (h ^ record[i]) * MUL2;
	return mix(h);
}

/* Five printable characters out of the 64 bits of a word. */
static void
printable(unsigned char *p, uint64_t word)
{
	for (int i = 0; i < 5; i++)
	{
		unsigned __int128 wide = (unsigned __int128) word * 95;

		p[i] = (unsigned char) (' ' + (unsigned) (wide >> 64));
		word = (uint64_t) wide;
	}
}

static void
make_record(const Options *options, uint64_t number, unsigned char *record)
{
	unsigned char *value = record + KEY_LEN;
	uint64_t	key_source = number;
	uint64_t	key_seed = mix(options->seed + STEP);
	uint64_t	value_seed = mix(key_seed + STEP);
	uint64_t	first, second;

	if (options->distinct > 0)
		key_source = mix(value_seed ^ number * STEP) % options->distinct;
	first = mix(key_seed + (2 * key_source + 1) * STEP);
	second = mix(key_seed + (2 * key_source + 2) * STEP);

	if (options->ascii)
	{
		uint64_t	rest = number;

		printable(record, first);
		printable(record + 5, second);
		memset(value, ' ', 24);
		for (int i = 21; i >= 2; i--, rest /= 10)
			value[i] = (unsigned char) ('0' + rest % 10);
		for (int i = 0; i < 4; i++)
		{
			uint64_t	word = mix(value_seed + (4 * number + (uint64_t) i) * STEP);

			for (int j = 0; j < 16; j++)
				value[24 + 16 * i + j] = (unsigned char) ('a' + (word >> 4 * j & 15));
		}
		value[88] = (unsigned char) ('a' + number % 16);
		value[89] = '\n';
	}
	else
	{
		store64(record, first);
		record[8] = (unsigned char) second;
		record[9] = (unsigned char) (second >> 8);
		for (int i = 0; i < 8; i++)
			value[i] = (unsigned char) (number >> (56 - 8 * i));
		for (int i = 0; i < 10; i++)
			store64(value + 8 + 8 * i,
					mix(value_seed + (10 * number + (uint64_t) i) * STEP));
		value[88] = (unsigned char) (second >> 16);
		value[89] = (unsigned char) (second >> 24);
	}
}

/* --- output ------------------------------------------------------------ */

static void
flush(Stream *out)
{
	size_t		done = 0;

	while (done < out->used)
	{
		ssize_t		n = write(out->fd, out->buffer + done, out->used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("cannot write %s: %s", out->name, strerror(errno));
		done += (size_t) n;
	}
	out->used = 0;
}

/* A character column's text with its escapes, or a bytea column's in hex. */
static unsigned char *
put_text_field(unsigned char *p, const unsigned char *bytes, unsigned length, bool ascii)
{
	static const char digit[] = "0123456789abcdef";

	if (!ascii)
	{
		memcpy(p, "\\\\x", 3);
		p += 3;
	}
	for (unsigned i = 0; i < length; i++)
	{
		unsigned char c = bytes[i];

		if (!ascii)
		{
			*p++ = (unsigned char) digit[c >> 4];
			*p++ = (unsigned char) digit[c & 15];
			continue;
		}
		if (c == '\\' || c == '\n')
			*p++ = '\\';
		*p++ = c == '\n' ? 'n' : c;
	}
	return p;
}

/* Returns the end of the record written at p. */
static unsigned char *
put_record(const Options *options, const unsigned char *record, unsigned char *p)
{
	if (options->format == FORMAT_RAW)
	{
		memcpy(p, record, RECORD_LEN);
		return p + RECORD_LEN;
	}
	if (options->format == FORMAT_COPY)
	{
		memcpy(p, key_head, 6);
		memcpy(p + 6, record, KEY_LEN);
		memcpy(p + 6 + KEY_LEN, value_head, 4);
		memcpy(p + 10 + KEY_LEN, record + KEY_LEN, VALUE_LEN);
		return p + 10 + RECORD_LEN;
	}
	p = put_text_field(p, record, KEY_LEN, options->ascii);
	*p++ = '\t';
	p = put_text_field(p, record + KEY_LEN, VALUE_LEN, options->ascii);
	*p++ = '\n';
	return p;
}

static void
generate(const Options *options, Stream *out)
{
	unsigned char record[RECORD_LEN];
	uint64_t	checksum = 0;

	if (options->format == FORMAT_COPY)
	{
		memcpy(out->buffer, copy_header, sizeof(copy_header));
		out->used = sizeof(copy_header);
	}
	for (uint64_t i = 0; i < options->count; i++)
	{
		if (out->used > BUFFER_LEN - TEXT_MAX)
			flush(out);
		make_record(options, options->start + i, record);
		if (options->checksum)
			checksum += hash_record(record);
		out->used = (size_t) (put_record(options, record, out->buffer + out->used)
							  - out->buffer);
	}
	if (options->format == FORMAT_COPY)
	{
		memset(out->buffer + out->used, 0xFF, 2);
		out->used += 2;
	}
	flush(out);
	if (options->checksum)
		fprintf(stderr, "records %" PRIu64 "\nchecksum %016" PRIx64 "\n",
				options->count, checksum);
}

/* --- validation -------------------------------------------------------- */

/*
 * The next length bytes of the input, or NULL at its end.  An input that ends
 * inside them is an error.
 */
static const unsigned char *
take(Stream *in, size_t length)
{
	while (in->used - in->next < length)
	{
		ssize_t		n;

		memmove(in->buffer, in->buffer + in->next, in->used - in->next);
		in->used -= in->next;
		in->next = 0;
		n = read(in->fd, in->buffer + in->used, BUFFER_LEN - in->used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("cannot read %s: %s", in->name, strerror(errno));
		if (n == 0 && in->used == 0)
			return NULL;
		if (n == 0)
			die("%s ends inside a record", in->name);
		in->used += (size_t) n;
	}
	in->next += length;
	return in->buffer + in->next - length;
}

static const unsigned char *
take_rest(Stream *in, size_t length)
{
	const unsigned char *p = take(in, length);

	if (p == NULL)
		die("%s ends too early", in->name);
	return p;
}

/* Copies the next record of a binary COPY stream; false at the trailer. */
static bool
take_copy_record(Stream *in, unsigned char *record)
{
	const unsigned char *p = take_rest(in, 2);

	if (p[0] == 0xFF && p[1] == 0xFF)
		return false;
	in->next -= 2;
	p = take_rest(in, 10 + RECORD_LEN);
	if (memcmp(p, key_head, 6) != 0 || memcmp(p + 6 + KEY_LEN, value_head, 4) != 0)
		die("%s: a row is not a key of %d bytes and a value of %d",
			in->name, KEY_LEN, VALUE_LEN);
	memcpy(record, p + 6, KEY_LEN);
	memcpy(record + KEY_LEN, p + 10 + KEY_LEN, VALUE_LEN);
	return true;
}

static bool
take_record(Stream *in, unsigned char *record)
{
	const unsigned char *p = take(in, RECORD_LEN);

	if (p != NULL)
		memcpy(record, p, RECORD_LEN);
	return p != NULL;
}

static int
validate(Format format, Stream *in)
{
	unsigned char record[RECORD_LEN];
	unsigned char previous[KEY_LEN];
	uint64_t	records = 0, duplicates = 0, disorders = 0, checksum = 0, keys = 0;
	uint64_t	first_disorder = 0;

	if (format == FORMAT_COPY
		&& memcmp(take_rest(in, sizeof(copy_header)), copy_header, sizeof(copy_header)) != 0)
		die("%s is not a binary COPY stream", in->name);
	while (format == FORMAT_COPY ? take_copy_record(in, record) : take_record(in, record))
	{
		if (records > 0)
		{
			int			order = memcmp(previous, record, KEY_LEN);

			if (order == 0)
				duplicates++;
			if (order > 0 && disorders++ == 0)
				first_disorder = records;
		}
		memcpy(previous, record, KEY_LEN);
		checksum += hash_record(record);
		keys = mix(keys ^ load64(record)) + (uint64_t) (record[8] << 8 | record[9]) * STEP;
		records++;
	}
	if (format == FORMAT_COPY && take(in, 1) != NULL)
		die("%s goes on after its trailer", in->name);
	printf("records %" PRIu64 "\nchecksum %016" PRIx64 "\nduplicates %" PRIu64
		   "\ndisorders %" PRIu64 "\nkeys %016" PRIx64 "\n",
		   records, checksum, duplicates, disorders, keys);
	if (disorders > 0)
		fprintf(stderr, "gensort: record %" PRIu64 " is smaller than its predecessor\n",
				first_disorder);
	if (fflush(stdout) != 0 || ferror(stdout))
		die("cannot write the result: %s", strerror(errno));
	return disorders > 0;
}

/* --- command line ------------------------------------------------------ */

static _Noreturn void
usage(void)
{
	fprintf(stderr,
			"usage: gensort [-a] [-b START] [-s SEED] [-d KEYS] [-f raw|copy|text] [-c] COUNT [FILE]\n"
			"       gensort -v [-f raw|copy] [FILE]\n"
			"  -a  ASCII records instead of binary ones\n"
			"  -b  number of the first record (default 0)\n"
			"  -s  seed (default 1)\n"
			"  -d  number of different keys (default: no limit)\n"
			"  -f  bare records, or PostgreSQL's COPY format, binary or text\n"
			"  -c  print number and checksum of the records on standard error\n"
			"  -v  validate: order, duplicate keys, checksum\n");
	exit(2);
}

static uint64_t
number(const char *text)
{
	char	   *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || strchr(text, '-') != NULL)
		die("not a number: %s", text);
	return value;
}

int
main(int argc, char **argv)
{
	static Stream stream;
	Options		options = {.seed = 1};
	bool		check = false;
	int			status = 0;
	int			option;

	while ((option = getopt(argc, argv, "ab:s:d:f:cv")) != -1)
	{
		if (option == 'a')
			options.ascii = true;
		else if (option == 'b')
			options.start = number(optarg);
		else if (option == 's')
			options.seed = number(optarg);
		else if (option == 'd')
			options.distinct = number(optarg);
		else if (option == 'c')
			options.checksum = true;
		else if (option == 'v')
			check = true;
		else if (option == 'f' && strcmp(optarg, "raw") == 0)
			options.format = FORMAT_RAW;
		else if (option == 'f' && strcmp(optarg, "copy") == 0)
			options.format = FORMAT_COPY;
		else if (option == 'f' && strcmp(optarg, "text") == 0)
			options.format = FORMAT_TEXT;
		else
			usage();
	}
	if (!check)
	{
		if (optind == argc)
			usage();
		options.count = number(argv[optind++]);
	}
	if (argc - optind > 1 || (check && options.format == FORMAT_TEXT))
		usage();

	stream.fd = check ? STDIN_FILENO : STDOUT_FILENO;
	stream.name = check ? "standard input" : "standard output";
	if (optind < argc)
	{
		stream.name = argv[optind];
		stream.fd = open(stream.name, check ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (stream.fd < 0)
			die("cannot open %s: %s", stream.name, strerror(errno));
	}
	if (check)
		status = validate(options.format, &stream);
	else
		generate(&options, &stream);
	if (close(stream.fd) != 0)
		die("cannot close %s: %s", stream.name, strerror(errno));
	return status;
}
