/*
 * Decodes a JPEG a few rows at a time through the interface of libjpeg.
 *
 * This is C because libjpeg reports errors with longjmp, which must not cross Rust stack frames. Every function here
 * catches it and returns a status. All decisions but one are made in Rust: which of libjpeg's warnings are damage.
 */

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

struct raster_jpeg {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    int scans_max;
    /* The first error, or warning of damage. */
    char message[JMSG_LENGTH_MAX];
};

static void note(struct raster_jpeg *jpeg) {
    if (jpeg->message[0] == '\0') {
        jpeg->errors.format_message((j_common_ptr)&jpeg->info, jpeg->message);
    }
}

static void on_error(j_common_ptr info) {
    struct raster_jpeg *jpeg = info->client_data;
    note(jpeg);
    longjmp(jpeg->escape, 1);
}

/* Whether the current warning says that samples are lost. The others are about oddities that do not change the samples. */
static int is_damage(const struct raster_jpeg *jpeg) {
    switch (jpeg->errors.msg_code) {
    /* A baseline scan has no parameters, whatever its header states. */
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
        return 0;
    /* Bytes before a restart marker belong to an interval whose samples ended early. Before other markers they are between segments. */
    case JWRN_EXTRANEOUS_DATA:
        return jpeg->errors.msg_parm.i[1] >= 0xd0 && jpeg->errors.msg_parm.i[1] <= 0xd7;
    /* The Huffman decoders warn again (JWRN_HIT_MARKER) if the samples need more bits. The arithmetic one does not. */
    case JWRN_JPEG_EOF:
        return jpeg->info.arith_code;
    default:
        return 1;
    }
}

static void on_message(j_common_ptr info, int level) {
    if (level < 0) {
        info->err->num_warnings++;
        if (is_damage(info->client_data)) {
            note(info->client_data);
        }
    }
}

/* Limits the number of scans: each takes a few bytes of input and requires processing the whole picture. */
static void on_progress(j_common_ptr info) {
    struct raster_jpeg *jpeg = info->client_data;
    if (jpeg->info.input_scan_number > jpeg->scans_max) {
        strcpy(jpeg->message, "too many scans");
        longjmp(jpeg->escape, 1);
    }
}

/*
 * Reads the header. Returns NULL if there is no memory; other functions report damaged data. The bytes must outlive the
 * decoder.
 */
struct raster_jpeg *raster_jpeg_open(const unsigned char *bytes, size_t length, int scans_max) {
    struct raster_jpeg *jpeg = calloc(1, sizeof(*jpeg));
    if (jpeg == NULL) {
        return NULL;
    }
    jpeg->info.err = jpeg_std_error(&jpeg->errors);
    jpeg->errors.error_exit = on_error;
    jpeg->errors.emit_message = on_message;
    jpeg->progress.progress_monitor = on_progress;
    jpeg->scans_max = scans_max;
    jpeg->info.client_data = jpeg;
    if (setjmp(jpeg->escape)) {
        return jpeg;
    }
    jpeg_create_decompress(&jpeg->info);
    jpeg->info.progress = &jpeg->progress;
    jpeg_mem_src(&jpeg->info, bytes, (unsigned long)length);
    jpeg_read_header(&jpeg->info, TRUE);
    return jpeg;
}

/* Returns the first message, or NULL if there was no error or damage. */
const char *raster_jpeg_message(const struct raster_jpeg *jpeg) {
    return jpeg->message[0] == '\0' ? NULL : jpeg->message;
}

/* Stores the width, the height, the bits per sample, and libjpeg's number of the color space. */
void raster_jpeg_header(const struct raster_jpeg *jpeg, unsigned header[4]) {
    header[0] = jpeg->info.image_width;
    header[1] = jpeg->info.image_height;
    header[2] = (unsigned)jpeg->info.data_precision;
    header[3] = (unsigned)jpeg->info.jpeg_color_space;
}

/*
 * Starts decoding to a color space, with sides divided by `reduction`. If `width` is not zero, only this many columns from
 * `left` onwards are decoded; both must be aligned to blocks. Stores the size of the output in `size`. Returns 0, or -1 on
 * failure.
 */
int raster_jpeg_start(struct raster_jpeg *jpeg, unsigned color_space, unsigned reduction, unsigned left, unsigned width,
                      unsigned size[2]) {
    JDIMENSION first = left;
    JDIMENSION columns = width;
    if (setjmp(jpeg->escape)) {
        return -1;
    }
    jpeg->info.out_color_space = (J_COLOR_SPACE)color_space;
    jpeg->info.scale_num = 1;
    jpeg->info.scale_denom = reduction;
    jpeg->info.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg->info);
    if (width != 0) {
        jpeg_crop_scanline(&jpeg->info, &first, &columns);
        if (first != left || columns != width) {
            strcpy(jpeg->message, "the region is not aligned to blocks");
            return -1;
        }
    }
    size[0] = jpeg->info.output_width;
    size[1] = jpeg->info.output_height;
    return 0;
}

/* Reads `rows` rows, stored `pitch` bytes apart. Returns 0, or -1 on failure. */
int raster_jpeg_read(struct raster_jpeg *jpeg, unsigned char *pixels, size_t pitch, unsigned rows) {
    if (setjmp(jpeg->escape)) {
        return -1;
    }
    JDIMENSION read = 0;
    while (read < rows) {
        JSAMPROW lines[16];
        JDIMENSION count = rows - read < 16 ? rows - read : 16;
        for (JDIMENSION line = 0; line < count; line++) {
            lines[line] = pixels + (size_t)(read + line) * pitch;
        }
        count = jpeg_read_scanlines(&jpeg->info, lines, count);
        if (count == 0) {
            strcpy(jpeg->message, "there are no more rows");
            return -1;
        }
        read += count;
    }
    return 0;
}

/* Skips `rows` rows. Returns 0, or -1 on failure. */
int raster_jpeg_skip(struct raster_jpeg *jpeg, unsigned rows) {
    if (setjmp(jpeg->escape)) {
        return -1;
    }
    jpeg_skip_scanlines(&jpeg->info, rows);
    return 0;
}

/* Reads from the last row to the end of the file. Returns 0, or -1 after any error or damage. */
int raster_jpeg_finish(struct raster_jpeg *jpeg) {
    if (setjmp(jpeg->escape)) {
        return -1;
    }
    jpeg_finish_decompress(&jpeg->info);
    return jpeg->message[0] == '\0' ? 0 : -1;
}

void raster_jpeg_close(struct raster_jpeg *jpeg) {
    jpeg_destroy_decompress(&jpeg->info);
    free(jpeg);
}
